#!/usr/bin/python3
"""One libtorrent peer. dissemination.py starts a process for each and compares Fedge with them.

  torrent_peer.py seed|leech TORRENT DIRECTORY PORT OTHERS UPLOAD_MBIT SUPER

The first line on standard input starts the transfer. A leech prints "seconds uploaded-bytes" since then when it has
all data; every peer prints it again when standard input ends. Rate limits also apply on loopback, which libtorrent
exempts by default, and several peers may have the same address.
"""
import select
import sys
import time

import libtorrent as lt


def main():
    role, torrent, directory, port, others, mbit, seeding = sys.argv[1:]
    session = lt.session({
        "listen_interfaces": f"127.0.0.1:{port}",
        "enable_dht": False, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
        "allow_multiple_connections_per_ip": True,
        "enable_incoming_utp": False, "enable_outgoing_utp": False,
        "unchoke_slots_limit": 16,
        "connection_speed": 200,
        "upload_rate_limit": int(float(mbit) * 1e6 / 8),
        "alert_mask": 0,
    })
    everywhere = lt.ip_filter()
    everywhere.add_rule("0.0.0.0", "255.255.255.255", 1 << lt.session.global_peer_class_id)
    session.set_peer_class_filter(everywhere)
    parameters = lt.add_torrent_params()
    parameters.ti = lt.torrent_info(torrent)
    parameters.save_path = directory
    if role == "seed":
        parameters.flags |= lt.torrent_flags.seed_mode
        if seeding == "super":
            parameters.flags |= lt.torrent_flags.super_seeding
    handle = session.add_torrent(parameters)
    handle.set_max_uploads(16)
    print("ready", flush=True)
    sys.stdin.readline()
    begun = time.monotonic()
    for other in others.split(","):
        if int(other) < int(port) or role == "seed":
            handle.connect_peer(("127.0.0.1", int(other)))
    if role == "leech":
        while not handle.status().is_seeding:
            time.sleep(0.02)
        print(f"{time.monotonic() - begun:.3f} {handle.status().total_payload_upload}", flush=True)
    while not select.select([sys.stdin], [], [], 1)[0]:
        pass
    print(f"{time.monotonic() - begun:.3f} {handle.status().total_payload_upload}", flush=True)


main()
