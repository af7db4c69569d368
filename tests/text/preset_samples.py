"""What the preset rules find, between guillemets, and what looks like it, but is something else.

All values are made up. Keys are put together here, so that nobody takes them for real ones.
"""

from __future__ import annotations

__all__ = ["FOUND", "LEFT", "PEM", "body"]


def body(length: int, alphabet: str = "aZ3kQ9xB7mT2vL5") -> str:
    """So many characters of a key."""
    return (alphabet * length)[:length]


HEX, CAPITALS, DIGITS = "3fa90c", "Q7ZK2MXW", "3141592653"
BEGIN, END = "-----" + "BEGIN ", "-----" + "END "
PEM = f"{BEGIN}PRIVATE KEY-----\n{body(64)}\n{body(40)}==\n{END}PRIVATE KEY-----"
JWT_HEAD, JWT_BODY = "ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiI3In0"
JWT = f"{JWT_HEAD}.{JWT_BODY}.{body(43)}"

FOUND: dict[str, list[str]] = {
    "email": [
        "an «user@m\u00fcnchen.de» too",
        "«ann@почта.рф»",
        "«ann@example.org»(work), «ann@example.de»(home)",
        "write to «ann@example.com».",
        "«ann.o.neil+tag@example.com»",
        "«a@b.co», «c@d.org»; «e@f.net»",
        "<«first.last@mail.eu.example.co.uk»>",
        "mailto:«ann_b-c@example.museum»?subject=x",
        "(«ann%dept@example.com»)",
        "请联系«ann@example.com»。",
        "?email=«ann@example.io»&x=1",
        "'«ANN@EXAMPLE.COM»'",
        "«ann@1and1.example.com»",
        "«ann@xn--bcher-kva.xn--p1ai»",
        f"«{body(64)}@{body(63)}.example.com»",
        "«ann@example.com»-ish and «bob@example.com»",
        "«...ann@example.com»",
    ],
    "phone": [
        "«+49 (0) 30 - 123 456»",
        "«8 (495) 123-45-67»",
        "«+1\u00a0555\u202f123\u20114567»",
        "«555\u2011123\u20114567»",
        "call «+49 30 901820» now",
        "«+49 (0)30 901820»",
        "«+442079460958»",
        "«+1 (555) 123-4567», «+1-555-123-4567»",
        "«+33.6.12.34.56.78»",
        "tel:«+351912345678»",
        "«0049 30 901820»",
        "«001 555 123 4567»",
        "«(0)30 901820»",
        "«030/901820», then «0171-1234567»",
        "«020 7946 0958»",
        "«030 901820», «030 901821»",
        "«06 12 34 56 78»",
        "«555-123-4567».",
        "«(555) 123-4567» or «(555)123-4567»",
        "«555.123.4567» «555 123 4567»",
        "«1-800-555-0199», «1.800.555.0199»",
        "«+1 555 123 4567» 89",
        "«+886 2 2345 6789»x12",
    ],
    "card": [
        "«4111\u20111111\u20111111\u20111111»",
        "«4111\u202f1111\u202f1111\u202f1111»",
        "«4111\u00a01111\u00a01111\u00a01111»",
        "«4111 1111 1111 1111»",
        "«4111-1111-1111-1111».",
        "«4111111111111111»",
        "«5500 0000 0000 0004»",
        "«2223000048400011»",
        "«3782 822463 10005»",
        "«371449635398431»",
        "«6011 1111 1111 1117»",
        "«30569309025904»",
        "«3530 1113 3330 0000»",
        "«6200000000000005»",
        "«4222222222222»",
        "order 12 «4111 1111 1111 1111» 99",
        "99«4111111111111111»5",
        "77«4111 1111 1111 1111»",
        "«4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1»",
        "«4111111111111111»,«5500000000000004»",
    ],
    "iban": [
        "«DE89\u00a03704\u00a00044\u202f0532\u00a00130\u00a000»",
        "«DE89370400440532013000»",
        "«DE89 3704 0044 0532 0130 00» and",
        "«GB82 WEST 1234 5698 7654 32».",
        "«FR14 2004 1010 0505 0001 3M02 606»",
        "«NO93 8601 1117 947»",
        "«NL91ABNA0417164300»",
        "«BE68 5390 0754 7034» «CH93 0076 2011 6238 5295 7»",
        "«MT84MALT011000012345MTLCAST001S»",
        "«ES9121000418450200051332»/x",
        "IBAN:«IT60X0542811101000000123456»",
        "«PL61109010140000071219812874» OK",
        "«SE45 5000 0000 0583 9825 7466» 12 34",
        "«AT6 1 1904 3002 3457 3201»",
    ],
    "ssn": [
        "«123\u201145\u20116789», «123\u00a045\u00a06789»",
        "«123-45-6789»",
        "SSN «123-45-6789».",
        "«123 45 6789»",
        "(«001-01-0001»)",
        "«899-99-9999»",
        "«665-12-3456», «667-12-3456»",
        "ssn=«219-09-9999»",
        "'«457-55-5462»'",
        "«123-45-6789»\n«123-45-6780»",
        "社会«123-45-6789»号",
        "«123-45-6789»-",
        "123 «123-45-6789»",
    ],
    "ipv4": [
        "«10.0.0.1»",
        "at «192.168.1.254».",
        "http://«127.0.0.1»:8080/",
        "«10.0.0.0»/24",
        "«255.255.255.255», «0.0.0.0»",
        "[«8.8.8.8»]",
        "host=«172.16.254.1»;",
        "«192.168.001.001»",
        "«10.0.0.1-10.0.0.9», «10.0.0.1» - «10.0.0.9»",
        "在«10.1.2.3»上",
        '"«203.0.113.7»"',
        "ping «198.51.100.23»\n",
    ],
    "ipv6": [
        "«IPv6:2001:db8::1», «ip:2001:db8:85a3::8a2e:370:7334»",
        "«2001:db8::1-2001:db8::5»",
        "«2001:db8::1»-old",
        "«2001:db8:85a3:8d3:1319:8a2e:370:7348»",
        "«2001:db8::1».",
        "«fe80::1»: up",
        "«fe80::1».5",
        "«::1»",
        "«::ffff:192.0.2.128»",
        "«2001:DB8::FF00:42:8329»",
        "http://[«2001:db8::1»]:443/",
        "«2001:db8::»/32",
        "«1:2:3:4:5:6:7::», «::2:3:4:5:6:7:8»",
        "«64:ff9b::192.0.2.33»",
        "«fe80::1ff:fe23:4567:890a»%eth0",
        "地址«2001:db8::7»。",
        "«dead:beef::cafe»",
    ],
    "openai-key": [
        template.replace("KEY", key)
        for key in ("sk" + "-" + body(48), "sk" + "-proj-" + body(80) + "_-x")
        for template in ("«KEY»", "MY_«KEY»", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "(«KEY»)")
    ],
    "anthropic-key": [
        template.replace("KEY", "sk" + "-ant-" + kind + body(93))
        for kind in ("api03-", "admin01-")
        for template in ("«KEY»", "key=«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "(«KEY»)")
    ],
    "openrouter-key": [
        template.replace("KEY", "sk" + "-or-" + kind + body(64, "0a1b2c"))
        for kind in ("v1-", "")
        for template in ("«KEY»", "key=«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "K_«KEY»")
    ],
    "groq-key": [
        template.replace("KEY", "gs" + "k_" + body(size))
        for size in (52, 20)
        for template in ("«KEY»", "key=«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "K_«KEY»")
    ],
    "aws-key": [
        template.replace("KEY", "A" + kind + body(16, CAPITALS))
        for kind in ("KIA", "SIA")
        for template in ("«KEY»", "AWS_«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "/«KEY»/x")
    ],
    "github-key": [
        *(
            template.replace("KEY", f"gh{kind}_{body(36)}")
            for kind in "oprsu"
            for template in ("«KEY»", "https://«KEY»@host/")
        ),
        f"token «github{'_pat_'}{body(22)}_{body(59)}».",
        f"«github{'_pat_'}{body(82)}»",
    ],
    "gitlab-key": [
        template.replace("KEY", "gl" + "pat-" + rest)
        for rest in (body(20), body(27) + ".01.1a2b3c4d5")
        for template in ("«KEY»", "key=«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "(«KEY»)")
    ],
    "slack-key": [
        *(
            template.replace("KEY", f"xox{kind}-{body(12, DIGITS)}-{body(12, DIGITS)}-{body(24)}")
            for kind in "abprs"
            for template in ("«KEY»", "key=«KEY».")
        ),
        f"«xapp{'-1-'}A{body(10, CAPITALS)}-{body(13, DIGITS)}-{body(64, HEX)}»",
        f'"«xoxe-1-{body(40)}»"',
    ],
    "stripe-key": [
        *(
            template.replace("KEY", f"{kind}k_{mode}_{body(24)}")
            for kind in "rs"
            for mode in ("live", "test")
            for template in ("«KEY»", "key=«KEY».", '"«KEY»"')
        ),
        f"«whsec{'_'}{body(32)}»",
    ],
    "google-key": [
        template.replace("KEY", "AI" + "za" + rest)
        for rest in (body(35), body(33) + "_x")
        for template in ("«KEY»", "?key=«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "(«KEY»)")
    ],
    "huggingface-key": [
        template.replace("KEY", "hf" + "_" + body(length))
        for length in (34, 37)
        for template in ("«KEY»", "key=«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "(«KEY»)")
    ],
    "sendgrid-key": [
        template.replace("KEY", "S" + "G." + first + "." + body(43))
        for first in (body(22), body(20) + "_-")
        for template in ("«KEY»", "key=«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "(«KEY»)")
    ],
    "npm-key": [
        template.replace("KEY", "np" + "m_" + body(length))
        for length in (36, 40)
        for template in ("«KEY»", "key=«KEY».", '"«KEY»"', "钥匙«KEY»。", "a «KEY» b", "(«KEY»)")
    ],
    "bearer": [
        template.replace("KEY", key)
        for key in (body(24), "mF_9.B5f-4.1JqM", body(40) + "+/~==")
        for template in (
            "Authorization: «Bearer KEY»",
            "authorization: «bearer KEY»,",
            "AUTHORIZATION:«BEARER\tKEY»",
            "'«Bearer  KEY»'",
            "use «Bearer KEY» here",
        )
    ],
    "jwt": [
        *(
            template.replace("KEY", JWT)
            for template in (
                "«KEY»",
                "token=«KEY»&",
                '"«KEY»"',
                "令牌«KEY»。",
                "a «KEY» b",
                "(«KEY»)",
            )
        ),
        f"«{JWT_HEAD}.{JWT_BODY}.» unsigned",
        f"«{JWT_HEAD}.{body(30)}.{body(16)}.{body(90)}.{body(22)}»",
        f"«{JWT_HEAD}.{JWT_BODY}{body(3000)}.{body(86)}»",
        f"id_token: «{JWT}»\n",
        f"«{JWT}», «{JWT}»",
        f"Cookie: t=«{JWT}»; x",
    ],
    "private-key": [
        f"«{BEGIN}PRIVATE KEY-----MIIEvQ{body(60)}\n{END}PRIVATE KEY-----»",
        f"«{BEGIN}OPENSSH PRIVATE KEY-----b3BlbnNz{body(60)}»",
        *(
            f"«{BEGIN}{label}-----\n{body(64)}\n{END}{label}-----»"
            for label in (
                "PRIVATE KEY",
                "RSA PRIVATE KEY",
                "EC PRIVATE KEY",
                "DSA PRIVATE KEY",
                "OPENSSH PRIVATE KEY",
                "ENCRYPTED PRIVATE KEY",
                "PGP PRIVATE KEY BLOCK",
                "SSH2 ENCRYPTED PRIVATE KEY",
            )
        ),
        f"```\n«{PEM}»\n```",
        f"«{PEM}»\n«{PEM}»",
        '{"key": "«' + PEM.replace("\n", "\\n") + '»\\n"}',
        f"«{PEM.replace(chr(10), ' ')}»",
        f"«{PEM[:70]}»",
        f"«{PEM[:-1]}»",
        f"-«{PEM}»",
    ],
    "url": [
        "see «https://example.com».",
        "«http://example.com/a/b?c=d&e=f#g», and",
        "(«https://example.com/a_(b)»)",
        "(see «https://example.com/a»)",
        "[here](«https://example.com/a»).",
        "[«https://example.com»](«https://example.com/b»)",
        "«ftp://files.example.org/x.txt»",
        "«www.example.com/»",
        "<«HTTPS://EXAMPLE.COM/»>",
        '"«http://localhost:8000/v1»"',
        "«http://[2001:db8::1]:80/»",
        "请看«https://example.com»。",
        "**«https://example.com/a-b»**",
        "«https://user@example.com/%20x»!",
        "«https://example.com/?a[]=1»",
    ],
}

_INSIDE = ("xKEY", "x1KEY", "x-KEY", "9KEY", "ZKEY", "-KEY", "--KEY")  # of a longer word


def inside(key: str) -> list[str]:
    """A key where it is part of a word."""
    return [template.replace("KEY", key) for template in _INSIDE]


LEFT: dict[str, list[str]] = {
    "email": [
        "scores = q@k.transpose(-2, -1)",
        "y = W@x.mean()",
        "@mention",
        "thanks @ann.example",
        "ann@localhost",
        "ann@",
        "ann@.com",
        "ann@-example.com",
        "ann@example-.com",
        "ann @ example.com",
        "react@18.2.0",
        "icon@2x.png",
        "git clone git@github.com:owner/name",
        "ann@exam_ple.com",
        f"{body(65)}@example.com",
        "@decorator.method",
        "5 @ 3.50",
    ],
    "phone": [
        "01 02 03 04 05 06",
        "0100 0101 0110 0111",
        "300 000 0000 people",
        "ZIP 02139 4307",
        "2026-12-02",
        "02.12.2026 12:30",
        "02/12/2026",
        "02-12-2026 09:15:00",
        "+2026-12-02",
        "5551234567",
        "0012345678",
        "2.555.123.4567",
        "21.555.123.4567",
        "x-555-123-4567",
        "05 2024 20",
        "0049301234567",
        "078-05-1120",
        "192.168.100.200",
        "$1,234,567.89",
        "1 234 567 890",
        "+52.520008, +13.404954",
        "x = 2+1234567",
        "12:30:45",
        "123-45-6789",
        "978-3-16-148410-0",
        "123e4567-e89b-12d3-a456-426614174000",
        "2020-2024, 100-200",
        "+12345",
        "3.14159265358979",
        "a555-123-4567",
        "+1234567890123456",
        "+1 555 123",
    ],
    "card": [
        "3 6 9 12 15 18 21 24 27",
        "4111 1111 1111 1112",
        "1234 5678 9012 3452",
        "4111  1111  1111  1111",
        "4111_1111_1111_1111",
        "411111111111",
        "42222222222227",
        "0.4111111111111111",
        "9999999999999995",
        "5600000000000003",
        "3782 8224 6310 004",
        "2026-12-02 12:30:45",
        "4111\n1111\n1111\n1111",
        "4111, 1111, 1111, 1111",
        "",
        "4",
    ],
    "iban": [
        "DE88370400440532013000",
        "DE8937040044053201300",
        "de89370400440532013000",
        "XX89370400440532013000",
        "DE89-3704-0044-0532-0130-00",
        "DE89  3704  0044  0532  0130  00",
        "ADE89370400440532013000",
        "1DE89370400440532013000",
        "GB82 TEST 1234 5698 7654 32",
        "CS50 IS A COURSE THAT MANY TAKE",
        "AB12",
        "DE89 and more",
        "DEAD BEEF",
    ],
    "ssn": [
        "000-12-3456",
        "666-12-3456",
        "900-12-3456",
        "999-99-9999",
        "123-00-4567",
        "123-45-0000",
        "123456789",
        "123-45 6789",
        "123.45.6789",
        "1234-56-7890",
        "123-45-67890",
        "x123-45-6789",
        "1-123-45-6789",
        "123-456-7890",
    ],
    "ipv4": [
        "Chrome/120.0.0.0",
        "256.0.0.1",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.4.5.6.7.8.9.10",
        "1.2.3.999",
        "v1.2.3.4",
        "Chrome 120.0.6099.109",
        "10.0.0.1a",
        "1234.1.1.1",
        "10.0.0.1234",
        "10..0.0.1",
        "tool-1.2.3.4.tar.gz",
        "1.2.3.4.5-rc",
        "10.0.0.",
        "a10.0.0.1",
        "1.2.3.4.5678",
    ],
    "ipv6": [
        "10:00::11:00",
        "std::vector",
        "a::b",
        "::",
        "Ada::Text_IO",
        "f32::MAX, f64::add(1)",
        "12:30",
        "12:30:45",
        "x[::2], x[1::2], x[::-1]",
        "00:1A:2B:3C:4D:5E",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1::2::3",
        "12345::1",
        "g::1",
        "dead: beef",
        ":) :: :(",
    ],
    "openai-key": [
        *inside("sk" + "-" + body(48)),
        "risk-" + body(30),
        "sk-learn",
        "sk-cube-grid-of-many-cubes-that-turn",
        "sk-" + body(19),
        "sk-proj-short",
        "sk_" + body(48),
    ],
    "anthropic-key": [
        *inside("sk" + "-ant-" + body(90)),
        "sk-ant-your-key",
        "sk-ant",
        "sk-" + body(40),
        "task-ant-colony-optimization-explained",
        "sk-ants-" + body(40),
    ],
    "openrouter-key": [
        *inside("sk" + "-or-v1-" + body(64)),
        "sk-or-v1-short",
        "sk-or",
        "sk-or-not",
        "task-or-" + body(30),
        "sk-oro-" + body(30),
        "SK-OR-V1-" + body(30),
    ],
    "groq-key": [
        *inside("gs" + "k_" + body(52)),
        "gsk_" + body(19),
        "gsk-" + body(40),
        "gsk_to_gsl",
        "GSK_" + body(40),
        "task_" + body(40),
        "gsk " + body(40),
    ],
    "aws-key": [
        *inside("AK" + "IA" + body(16, CAPITALS)),
        "AKIA" + body(15, CAPITALS),
        "AKIA" + body(17, CAPITALS),
        "AKIA" + body(16, CAPITALS).lower(),
        "ASIA",
        "ASIA PACIFIC",
    ],
    "github-key": [
        *inside("gh" + "p_" + body(36)),
        "ghp_" + body(35),
        "ghx_" + body(36),
        "gh-p_" + body(36),
        "github_pat_short",
        "github_patches",
    ],
    "gitlab-key": [
        *inside("gl" + "pat-" + body(20)),
        "glpat-" + body(19),
        "glpat_" + body(20),
        "glpat-",
        "GLPAT-" + body(20),
        "gl pat-" + body(20),
    ],
    "slack-key": [
        "xoxo-hugs-and-kisses",
        *inside("xo" + "xb-" + body(30)),
        "xoxb-" + body(9),
        "xoxo-",
        "xoxo xoxo",
        "xox9-" + body(30),
        "xapp-" + body(30, "abc"),
    ],
    "stripe-key": [
        *inside("sk" + "_live_" + body(24)),
        "pk_live_" + body(24),
        "sk_prod_" + body(24),
        "sk_live_" + body(15),
        "sk_test_case_one",
        "task_live_" + body(24),
    ],
    "google-key": [
        *inside("AI" + "za" + body(35)),
        "AIza" + body(34),
        "AIza" + body(36),
        "AIZA" + body(35),
        "AIza",
        "AI za" + body(35),
    ],
    "huggingface-key": [
        *inside("hf" + "_" + body(34)),
        "hf_" + body(29),
        "hf_hub_download_of_a_model_to_a_folder",
        "HF_" + body(34),
        "hf-" + body(34),
        "hf_",
    ],
    "sendgrid-key": [
        *inside("S" + "G." + body(22) + "." + body(43)),
        "SG." + body(22),
        "SG." + body(10) + "." + body(43),
        "SG." + body(22) + "." + body(20),
        "MSG.sender.name",
        "SG." + body(10) + " " + body(10) + "." + body(43),
        "SG.",
    ],
    "npm-key": [
        *inside("np" + "m_" + body(36)),
        "npm_" + body(35),
        "npm_config_registry_of_the_whole_project_here",
        "npm-" + body(36),
        "npm install",
        "NPM_" + body(36),
    ],
    "bearer": [
        "the bearer of bad news",
        "Bearer authentication",
        "Bearer responsibilities-and-duties",
        "Bearer <token>",
        "Bearer {token123456789}",
        "Bearer $TOKEN_1234567890",
        "Bearer\nabcdef0123456789",
        "Bearer: abcdef0123456789",
        "forbearer abcdef0123456789",
        "Bearer abc1",
        "BEARER",
        "bearer, 0123456789abcdef",
    ],
    "jwt": [
        *inside(JWT),
        JWT_HEAD,
        f"{JWT_HEAD}.",
        f"{JWT_HEAD}.{JWT_BODY}",
        f"ey.{JWT_BODY}",
        f"{JWT_HEAD} . {JWT_BODY} . x",
        f"eyJ.{body(40)}.{body(40)}",
    ],
    "private-key": [
        f"{BEGIN}PRIVATE KEY-----and nothing else",
        f"`{BEGIN}PRIVATE KEY-----` and so on",
        f'"{BEGIN}RSA PRIVATE KEY-----" in text',
        f"{BEGIN}PUBLIC KEY-----\n{body(64)}\n{END}PUBLIC KEY-----",
        f"{BEGIN}CERTIFICATE-----\n{body(64)}\n{END}CERTIFICATE-----",
        f"{END}PRIVATE KEY-----",
        "-----",
        "-----BEGIN",
        "BEGIN PRIVATE KEY",
        f"{BEGIN}private key-----\n{body(64)}",
        f"{BEGIN} PRIVATE KEY-----\n{body(64)}",
        f"{BEGIN}PRIVATE KEYS-----\n{body(64)}",
        "---\n| a | b |\n|-----|-----|",
    ],
    "url": [
        "http",
        "http://",
        "https://.",
        "xhttp://example.com",
        "file:///etc/hosts",
        "www",
        "www.",
        "www.example",
        "example.com",
        "awww.example.com",
        "ann@www.example.com",
        "https:/example.com",
        "ratio 1://2",
    ],
}
