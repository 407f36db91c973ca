#!/usr/bin/env python3
"""Writes the invented availability trace of aw_psp_rhythms.toml: aw_psp_trace.py > aw_psp_trace.csv.

200 clients work at twenty sites, client i at site i mod 20. A day lasts 600 s. The devices of a site are available
during its shift of 240 s, which begins later at every site. Each device begins and ends up to 20 s earlier or later
than its site, and is away during two breaks of 20 s.
"""
import random

DAY, SHIFT, JITTER, BREAK = 600, 240, 20, 20
CLIENTS, SITES = 200, 20


def intervals(client, draw):
    """Returns a client's intervals in a day. One that lasts over midnight is cut in two."""
    begin = client % SITES * DAY // SITES + draw.randint(-JITTER, JITTER)
    end = begin + SHIFT + draw.randint(-JITTER, JITTER)
    breaks = sorted(draw.sample(range(begin + BREAK, end - BREAK, 2 * BREAK), 2))
    marks = [begin, breaks[0], breaks[0] + BREAK, breaks[1], breaks[1] + BREAK, end]
    for up, down in zip(marks[::2], marks[1::2]):
        if up // DAY != (down - 1) // DAY:
            yield up % DAY, DAY
            yield 0, down % DAY
        else:
            yield up % DAY, (down - 1) % DAY + 1


def main():
    draw = random.Random(1)
    print("client,up_seconds,down_seconds")
    for client in range(CLIENTS):
        for up, down in sorted(intervals(client, draw)):
            print(f"{client},{up},{down}")


main()
