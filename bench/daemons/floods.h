// What strangers and enrolled clients who mean no good do to a coordinator, as fast as one process can.
#pragma once

#include <cstddef>
#include <string>

#include "core/crypto/ed25519.h"
#include "protocol/session/endpoint.h"

namespace fedge::bench {

struct Target {
  protocol::Address address;
  PublicKey coordinator;
  std::size_t enrolled = 0;  // clients from this number on, kFlooders of them, are enrolled and ours
};
inline constexpr std::size_t kFlooders = 16;

// Runs one of these for so long and says how often it did it; gives up if there is no such kind.
//   connections  opens connections from many addresses and says nothing
//   noise        sends 4 KiB of random bytes on each
//   slow         a thousand connections that send a TLS hello byte by byte
//   strangers    whole TLS handshakes and hellos with keys that nobody knows
//   pings        enrolled clients that send pings until they are cut off, and come back
//   reconnects   enrolled clients that come, say hello and go
//   headers      enrolled clients that announce a frame of 2 MiB and send nothing of it
std::size_t flood(const std::string& kind, const Target& target, double seconds);

}  // namespace fedge::bench
