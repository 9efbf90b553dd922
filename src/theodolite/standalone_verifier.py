"""Checks certificates of separation ranks apart from the program that made them: one file, Python and python-flint.

    python standalone_verifier.py FILE …        one JSON document a file, or one a line in a file named .jsonl

It knows self-attention without softmax (Eq. 7.6) and shares no code with Theodolite. What it rests on, with proofs, is
in docs/certificates.md and docs/cap.md:

  - y = r·F_L(S)·x with S = Σ_j x^j x^jᵀ, F_0 = E, F_{l+1} = Σ_h A_h F S Fᵀ B_h F, A_h = O_h V_h, B_h = K_hᵀ Q_h;
  - a square matrix of values y(a_i, b_j) that is regular modulo a prime proves sep ≥ its size for almost all weights;
  - the parts of y of degree c in S_B live in independent spaces, so that their ranks add up;
  - a zero of q(S) = aᵀF S Fᵀa modulo p with a regular Hessian is the premise of the theorem on growth.
"""

import hashlib
import json
import math
import sys
from pathlib import Path

import flint

BY_MINOR, SYSTEMS, SMALLEST_PRIME = 4000, 4, 1 << 20  # beyond BY_MINOR a plain certificate carries solutions


class Refused(Exception):
    """The certificate does not prove what it states."""


def need(condition, reason):
    if not condition:
        raise Refused(reason)


def draw(stream, count, p, start=0):
    """Numbers start, start + 1, … of a stream, as residues modulo p."""
    key = int.from_bytes(hashlib.sha256(f"theodolite-draw-1/{stream}".encode()).digest()[:8], "big")
    found = []
    for n in range(start, start + count):
        z = (key + (n + 1) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        found.append(((z ^ (z >> 31)) >> 1) % p)
    return found


class Network:
    """Self-attention modulo p on tokens of `features` numbers, weights drawn from `<stream>/<name of a parameter>`."""

    def __init__(self, stream, p, depth, width, heads, inner, features, entry=0):
        def weight(name, rows, columns):
            return flint.nmod_mat(rows, columns, draw(f"{stream}/{name}", rows * columns, p), p)

        unit = flint.nmod_mat([[int(i == j) for j in range(width)] for i in range(width)], p)
        self.row = flint.nmod_mat([[int(j == entry) for j in range(width)]], p)
        self.start = unit if features == width else weight("embed.weight", width, features)
        self.layers = []
        for layer in range(depth):
            project = weight(f"layers.{layer}.project.weight", 3 * heads * inner, width).tolist()
            combine = weight(f"layers.{layer}.combine.weight", width, heads * inner).transpose().tolist()
            cut = lambda rows, i: flint.nmod_mat(rows[i * inner : (i + 1) * inner], p)
            query, key, value = ([cut(project, k * heads + h) for h in range(heads)] for k in range(3))
            out = [cut(combine, h).transpose() for h in range(heads)]
            self.layers.append([(out[h] * value[h], key[h].transpose() * query[h]) for h in range(heads)])

    def output(self, s, x):
        """y at S and the output token x, a column."""
        f = self.start
        for layer in self.layers[:-1]:
            gram = f * s * f.transpose()
            f = total(a * gram * (b * f) for a, b in layer)
        y, across = f * x, f.transpose()
        return int(total(((self.row * a) * f * s) * (across * (b * y)) for a, b in self.layers[-1])[0, 0])


def inner_product(x, y):
    return sum(v * w for v, w in zip(x, y, strict=True))


def total(terms):
    first, *rest = terms
    for term in rest:
        first = first + term
    return first


def caps(depth, d, heads, inner):
    """What the part of degree c = 0 … C in S_B has at most, for all weights and tokens (docs/exact-rank.md)."""
    inner, many, top = min(inner, d), d * (d + 1) // 2, (3**depth - 1) // 2
    seen = min(many, heads * (inner**2 - math.comb(max(0, 2 * inner - d), 2)))
    entries = min(d, heads * inner)
    later = min(many, seen + entries * (entries + 1) // 2) - seen
    forms = lambda n, k: math.comb(n + k - 1, k) if n and k >= 0 else int(k == 0)
    g = (3 ** (depth - 1) - 1) // 2

    def staircase(c):
        columns = [forms(seen, c - j) * forms(later, j) for j in range(g + 1)]
        rows = [entries * forms(seen, top - c - j) * forms(later, j) for j in range(g + 1)]
        return min(sum(columns[:t]) + sum(rows[: g + 1 - t]) for t in range(g + 2))

    return [min(forms(many, c), d * forms(many, top - c), staircase(c)) for c in range(top + 1)]


def regular(rows, p):
    return flint.nmod_mat(rows, p).rank() == len(rows)


def whole(header, names, least=0, most=2**63 - 1):
    for name in names:
        need(type(header[name]) is int and least <= header[name] <= most, f"'{name}' is {header[name]!r}")


def prime(p):
    need(1 < p < 2**25 and all(p % k for k in range(2, math.isqrt(p) + 1)), f"{p} is no prime below 2^25")


def plain(header, solutions):
    """R points of either side, as tokens, at which the matrix of values is regular."""
    names = "net net_version source shape kind sites features token entry partition prime draw_rule seed repeat rank"
    need(set(header) == {*names.split(), "rows", "columns"}, "the header does not have the fields of a certificate")
    need(header["net"] == "self-attention" and header["source"] is None, "only self-attention is known here")
    whole(header, ("net_version", "sites", "features", "token", "entry", "prime", "seed", "repeat", "rank"))
    shape, p, rank, seed = header["shape"], header["prime"], header["rank"], f"{header['seed']}/{header['repeat']}"
    need(isinstance(shape, dict), "there is no shape")
    need(set(shape) - {"attention_width"} == {"depth", "width", "heads", "tokens"}, "a shape that is not known here")
    whole(shape, shape, 1, 4096)
    prime(p)
    depth, d, heads, n = (shape[name] for name in ("depth", "width", "heads", "tokens"))
    need(depth <= 5 and ("attention_width" in shape or d % heads == 0), "too deep, or heads do not divide the width")
    inner = shape.get("attention_width", d // heads)
    stated = (header["kind"], header["sites"], header["features"], header["net_version"])
    need(stated == ("sequence", n, d, 1), "the shape of the input, or the version, is another")
    need(header["token"] < n and header["entry"] < d, "there is no such output")
    sides = header["partition"]
    need(isinstance(sides, dict) and set(sides) == {"a", "b"}, "the partition has no two sides")
    need(all(isinstance(x, list) and x and all(type(i) is int for i in x) for x in sides.values()), "a side is no list")
    need(sorted(sides["a"] + sides["b"]) == list(range(n)), "the partition does not name every token once")
    bound = sum(caps(depth, d, heads, inner))
    need(1 <= rank <= bound, f"rank {rank} is 0, or more than the {bound} that any weights have")
    net = Network(f"{seed}/weights", p, depth, d, heads, inner, d, header["entry"])

    def points(side, ranges):
        need(isinstance(ranges, list) and all(isinstance(r, list) and len(r) == 2 for r in ranges), "no ranges")
        flat = [i for pair in ranges for i in pair]
        need(all(type(i) is int and 0 <= i < 2**24 for i in flat), "an index is no whole number below 2^24")
        need(all(first <= last for first, last in ranges), "a range runs backwards")
        need(all(flat[i] < flat[i + 1] for i in range(1, len(flat) - 1, 2)), "ranges repeat a point")
        need(sum(last - first + 1 for first, last in ranges) == rank, f"there are not {rank} points")
        sites = sides[side]
        for i in (i for first, last in ranges for i in range(first, last + 1)):
            size = len(sites) * d
            x = flint.nmod_mat(len(sites), d, draw(f"{seed}/{side}", size, p, i * size), p)
            here = header["token"] in sites
            mine = flint.nmod_mat([[v] for v in x.tolist()[sites.index(header["token"])]], p) if here else None
            yield x.transpose() * x, mine

    a, b = list(points("a", header["rows"])), list(points("b", header["columns"]))
    row = lambda i: [net.output(a[i][0] + s, x if a[i][1] is None else a[i][1]) for s, x in b]
    if rank <= BY_MINOR:
        need(solutions is None, "a certificate of this size carries no solutions")
        need(regular([row(i) for i in range(rank)], p), "the minor that it names is singular")
    else:
        need(p >= SMALLEST_PRIME, f"the prime {p} is too small for a check by solutions")
        need(isinstance(solutions, list) and len(solutions) == SYSTEMS, f"it needs {SYSTEMS} solutions")
        need(all(isinstance(x, list) and len(x) == rank for x in solutions), f"solutions have {rank} entries")
        need(all(type(v) is int and abs(v) < 2**63 for x in solutions for v in x), "a solution holds no whole number")
        name = hashlib.sha256(canonical(header)).hexdigest()
        wanted = [draw(f"certificate/{name}/{k}", rank, p) for k in range(SYSTEMS)]
        for i in range(rank):
            values = row(i)
            for x, right in zip(solutions, wanted, strict=True):
                need(inner_product(values, x) % p == right[i], f"a solution fails in row {i}")
    exact = " = cap" if rank == bound else ""
    return f"self-attention {json.dumps(shape)}, {json.dumps(sides)}: separation rank ≥ {rank}{exact}"


def graded(header):
    """Part by part: the first R_c points of either side, as Gram matrices; parts by interpolation in S_A + t·S_B."""
    names = ["depth", "width", "heads", "attention_width", "features", "tokens_with_output", "tokens_other"]
    others = {"net", "net_version", "prime", "draw_rule", "seed", "repeat", "parts"}
    need(set(header) == {*names, *others}, "the header does not have the fields of a certificate")
    need(header["net"] == "self-attention", "only self-attention is known here")
    whole(header, names, 1, 4096)
    whole(header, ("prime", "seed", "repeat"))
    whole(header, ("net_version",), 1, 1)
    depth, d, heads, inner, r, n, m = (header[name] for name in names)
    p, top, seed, parts = header["prime"], (3**depth - 1) // 2, f"{header['seed']}/{header['repeat']}", header["parts"]
    prime(p)
    need(depth <= 5 and r <= d and p > top, "too deep, more features than the width, or too small a prime")
    need(isinstance(parts, list) and parts and all(isinstance(x, list) and len(x) == 2 for x in parts), "no parts")
    need(all(type(v) is int for x in parts for v in x), "a part holds what is no whole number")
    need(all(parts[i][0] < parts[i + 1][0] for i in range(len(parts) - 1)), "parts are not in increasing order")
    most = caps(depth, r, heads, inner)
    need(all(0 <= c <= top and 1 <= rank <= most[c] for c, rank in parts), "a part has a rank that no weights have")
    net = Network(f"{seed}/weights", p, depth, d, heads, inner, r)

    def point(side, tokens, i):
        if tokens < r:
            x = flint.nmod_mat(r, tokens, draw(f"{seed}/{side}/tokens", r * tokens, p, i * r * tokens), p)
            return x * x.transpose(), flint.nmod_mat([[row[0]] for row in x.tolist()], p)
        s, x = draw(f"{seed}/{side}/gram", r * r, p, i * r * r), draw(f"{seed}/{side}/token", r, p, i * r)
        return flint.nmod_mat([[s[max(j, k) * r + min(j, k)] for k in range(r)] for j in range(r)], p), (
            flint.nmod_mat([[v] for v in x], p))  # fmt: skip

    size = max(rank for _, rank in parts)
    a, b = ([point(side, tokens, i) for i in range(size)] for side, tokens in (("a", n), ("b", m)))
    powers = flint.nmod_mat([[pow(t, c, p) for c in range(top + 1)] for t in range(top + 1)], p).inv().tolist()
    read = {c: [int(v) for v in powers[c]] for c, _ in parts}  # coefficient c from the values at t = 0 … C
    found = {c: [] for c, _ in parts}
    for i in range(size):
        rows = {c: [] for c, rank in parts if i < rank}
        for j in range(max(rank for c, rank in parts if c in rows)):
            s, values = a[i][0], []
            for _ in range(top + 1):
                values.append(net.output(s, a[i][1]))
                s = s + b[j][0]
            for c, rank in parts:
                if c in rows and j < rank:
                    rows[c].append(inner_product(values, read[c]) % p)
        for c in rows:
            found[c].append(rows[c])
    for c in found:
        need(regular(found[c], p), f"the matrix of degree {c} is singular")
    ranks = sum(rank for _, rank in parts)
    exact = " = cap" if ranks == sum(most) else ""
    return f"self-attention {[header[name] for name in names]}: separation rank ≥ {ranks}{exact}"


def growth(header):
    """A zero of q with a regular Hessian. Numbers are 4 × 4 matrices that hold 1, ε, η, εη: derivatives are exact."""
    names = ["width", "heads", "attention_width", "base"]
    need(set(header) == {*names, "prime", "draw_rule", "seed", "point"}, "the header does not have the right fields")
    whole(header, names, 1, 64)
    whole(header, ("prime", "seed"))
    (d, heads, inner, base), p, given = (header[name] for name in names), header["prime"], header["point"]
    prime(p)
    many = d * (d + 1) // 2
    need(d >= 2 and base <= 4 and 2 < p < 2**15, "width, base or prime are outside what is checked")
    need(isinstance(given, list) and len(given) == many, f"the point has not {many} entries")
    need(all(type(v) is int and 0 <= v < p for v in given), "the point holds what is no residue")
    net = Network(f"{header['seed']}/growth/weights", p, base, d, heads, inner, d)
    places = [(i, j) for i in range(d) for j in range(i, d)]

    def lifted(rows, parts=()):
        """Every entry v as v·1, and 1·ε or 1·η at the places given (and their mirror images)."""
        big = [[0] * (4 * len(rows[0])) for _ in range(4 * len(rows))]
        for i, row in enumerate(rows):
            for j, v in enumerate(row):
                for k in range(4):
                    big[4 * i + k][4 * j + k] = int(v)
        for part, (i, j) in parts:
            for row, column in {(i, j), (j, i)}:
                for low, high in ((0, 1), (2, 3)) if part == 0 else ((0, 2), (1, 3)):
                    big[4 * row + high][4 * column + low] += 1
        return flint.nmod_mat(big, p)

    layers = [[tuple(lifted(m.tolist()) for m in (a, b, a.transpose(), b.transpose())) for a, b in layer]
              for layer in net.layers]  # fmt: skip
    vector = draw(f"{header['seed']}/growth/vector", d, p)
    row, column = lifted([vector]), lifted([[v] for v in vector])
    point = [[0] * d for _ in range(d)]
    for (i, j), v in zip(places, given, strict=True):
        point[i][j] = point[j][i] = v

    def q(first, second):
        s = lifted(point, [(0, first), (1, second)])
        f = across = lifted([[int(i == j) for j in range(d)] for i in range(d)])  # F and its transpose
        for layer in layers:
            gram = f * s * across
            f, across = (total(a * gram * b * f for a, b, _, _ in layer),
                         total(across * bt * gram * at for _, _, at, bt in layer))  # fmt: skip
        value = (row * f) * s * (across * column)
        return [int(value[k, 0]) for k in range(4)]

    hessian, slope = [[0] * many for _ in range(many)], False
    for i in range(many):
        for j in range(i, many):
            value, first, _, mixed = q(places[i], places[j])
            need(value == 0, "the point is no zero of q")
            hessian[i][j] = hessian[j][i] = mixed
            slope = slope or first != 0
    need(slope, "the gradient is 0 at the point")
    need(regular(hessian, p), "the Hessian is singular at the point")
    return f"self-attention {[header[name] for name in names]}: premise of the theorem on growth, D = {many}"


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def once(pairs):
    need(len(dict(pairs)) == len(pairs), "a field stands twice")
    return dict(pairs)


KINDS = {
    "theodolite-certificate": (plain, ("header", "solutions")),
    "theodolite-graded-certificate": (graded, ("header",)),
    "theodolite-growth-certificate": (growth, ("header",)),
}


def check(text):
    """What the certificate proves, in a sentence. Raises `Refused` with the reason."""
    try:
        document = json.loads(text, object_pairs_hook=once)
        need(isinstance(document, dict) and isinstance(document.get("format"), str), "this is no certificate")
        need(document["format"] in KINDS, "this is no certificate")
        verify, parts = KINDS[document["format"]]
        need(set(document) == {"format", "version", "digest", *parts}, "the certificate is incomplete")
        need(type(document["version"]) is int and document["version"] == 1, "the version is unknown")
        content = canonical({name: document[name] for name in parts})
        need(hashlib.sha256(content).hexdigest() == document["digest"], "the digest does not fit the content")
        header = document["header"]
        need(isinstance(header, dict), "there is no header")
        need(type(header.get("draw_rule")) is int and header["draw_rule"] == 1, "the draw rule is unknown")
        return verify(*(document[name] for name in parts))
    except (ValueError, RecursionError) as error:  # not JSON, or a number that is not finite
        raise Refused(f"it cannot be read: {error}") from None


def main(files):
    refused = 0
    for file in files:
        text = Path(file).read_text(encoding="utf-8")
        texts = [line for line in text.splitlines() if line.strip()] if file.endswith(".jsonl") else [text]
        for number, text in enumerate(texts, 1):
            try:
                sys.stdout.write(f"valid: {check(text)}\n")
            except Refused as error:
                refused += 1
                sys.stdout.write(f"REFUSED: {file}, certificate {number}: {error}\n")
    return int(refused > 0 or not files)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
