// Attacks of strangers and of malicious enrolled clients on a coordinator, as fast as one process can mount
// them.
#pragma once

#include <cstddef>
#include <string>

#include "core/crypto/ed25519.h"
#include "protocol/session/endpoint.h"

namespace fedge::bench {

struct Target {
  protocol::Address address;
  PublicKey coordinator;
  std::size_t enrolled = 0;  // the kFlooders clients from this number on are enrolled and flood
};
inline constexpr std::size_t kFlooders = 16;

// Runs one kind of flood for `seconds` and returns how often it did its action. Ends the program if `kind` is
// unknown.
//   connections  opens connections from many addresses and sends nothing
//   noise        sends 4 KiB of random bytes on each connection
//   slow         a thousand connections that send a TLS hello byte by byte
//   strangers    whole TLS handshakes and hellos with keys that are not enrolled
//   pings        enrolled clients that send pings until they are disconnected, then reconnect
//   reconnects   enrolled clients that connect, say hello and leave
//   headers      enrolled clients that announce a frame of 2 MiB and send nothing of it
std::size_t flood(const std::string& kind, const Target& target, double seconds);

}  // namespace fedge::bench
