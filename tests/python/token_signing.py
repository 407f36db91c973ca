"""Keys and signed tokens of an identity provider, for tests. RS256, PS256 and ES256 are arithmetic in Python, without
OpenSSL, which the coordinator uses; EdDSA is libsodium's."""

import base64
import ctypes
import hashlib
import json
import secrets

# The key of RFC 7515, appendix A.2.
RSA_N = ("ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-"
         "yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-"
         "bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-"
         "UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-"
         "DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ")
RSA_D = ("Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-"
         "7YwVol2NXOoAJe46sui395IW_GO-pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V"
         "51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZF"
         "D9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOVRuOopznQ")


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def sha256(data):
    return hashlib.sha256(data).digest()


class RsaKey:
    """PKCS #1 v1.5 and PSS of RFC 8017."""

    n, d = (int.from_bytes(decoded(text), "big") for text in (RSA_N, RSA_D))

    def jwk(self):
        return {"kty": "RSA", "n": RSA_N, "e": "AQAB"}

    def sign(self, algorithm, message):
        block = self.padded(message) if algorithm == "RS256" else self.probabilistic(message)
        return pow(int.from_bytes(block, "big"), self.d, self.n).to_bytes(256, "big")

    def padded(self, message):
        info = bytes.fromhex("3031300d060960864801650304020105000420") + sha256(message)
        return b"\0\1" + b"\xff" * (256 - 3 - len(info)) + b"\0" + info

    def probabilistic(self, message):
        salt = secrets.token_bytes(32)
        tag = sha256(bytes(8) + sha256(message) + salt)
        data = bytes(256 - 32 - 32 - 2) + b"\1" + salt
        mask = b"".join(sha256(tag + count.to_bytes(4, "big")) for count in range(7))
        masked = bytearray(one ^ other for one, other in zip(data, mask))
        masked[0] &= 0x7f  # the modulus has 2048 bits, and the block one bit less
        return bytes(masked) + tag + b"\xbc"


class CurveKey:
    """ECDSA on P-256 (FIPS 186-4)."""

    P = 2**256 - 2**224 + 2**192 + 2**96 - 1
    N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551
    G = (0x6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296,
         0x4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5)

    def __init__(self):
        self.d = secrets.randbelow(self.N - 1) + 1
        self.x, self.y = self.times(self.d)

    def plus(self, a, b):
        if a is None or b is None:
            return a or b
        if a == b:
            slope = (3 * a[0] * a[0] - 3) * pow(2 * a[1], -1, self.P)
        elif a[0] == b[0]:
            return None
        else:
            slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, self.P)
        x = (slope * slope - a[0] - b[0]) % self.P
        return x, (slope * (a[0] - x) - a[1]) % self.P

    def times(self, factor):
        total, power = None, self.G
        while factor:
            if factor & 1:
                total = self.plus(total, power)
            power = self.plus(power, power)
            factor >>= 1
        return total

    def jwk(self):
        return {"kty": "EC", "crv": "P-256", "x": encoded(self.x.to_bytes(32, "big")),
                "y": encoded(self.y.to_bytes(32, "big"))}

    def sign(self, _, message):
        k = secrets.randbelow(self.N - 1) + 1
        r = self.times(k)[0] % self.N
        s = pow(k, -1, self.N) * (int.from_bytes(sha256(message), "big") + r * self.d) % self.N
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


class EdwardsKey:
    """Ed25519 of libsodium."""

    library = ctypes.CDLL("libsodium.so.23")

    def __init__(self):
        self.public, self.secret = ctypes.create_string_buffer(32), ctypes.create_string_buffer(64)
        assert self.library.crypto_sign_keypair(self.public, self.secret) == 0

    def jwk(self):
        return {"kty": "OKP", "crv": "Ed25519", "x": encoded(self.public.raw)}

    def sign(self, _, message):
        signature = ctypes.create_string_buffer(64)
        length = ctypes.c_ulonglong(len(message))
        assert self.library.crypto_sign_detached(signature, None, message, length, self.secret) == 0
        return signature.raw


def token_of(key, header, claims):
    """A token in the compact form; header and claims may also be bytes."""
    parts = [encoded(one if isinstance(one, bytes) else json.dumps(one).encode()) for one in (header, claims)]
    covered = ".".join(parts)
    algorithm = header["alg"] if isinstance(header, dict) else ""
    return covered + "." + encoded(key.sign(algorithm, covered.encode()))
