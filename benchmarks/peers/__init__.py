"""What others cost for the same work: `python -m benchmarks.peers` writes `RESULTS.md`."""
