// Fuzz target of secure sums with four members. The input decides the fate of every message (passed on,
// changed, lost, duplicated, delayed), dropouts, and the coordinator's claims about survivors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "protocol/codec.h"
#include "tests/fuzz/targets/secure_parties.h"

namespace fedge::fuzz {

class SecureScript {
 public:
  explicit SecureScript(std::span<const std::byte> script) : script_(script) {}

  void run() {
    parties_.start();
    for (int steps = 0; steps < 400 && position_ < script_.size(); ++steps) act(next());
    // Delivers the remaining messages as far as possible.
    for (int waits = 0; waits < 12 && !parties_.over(); ++waits) {
      while (!parties_.wire.empty()) parties_.deliver();
      if (parties_.to_be_summed())
        parties_.sum(0xff);
      else
        parties_.wait();
    }
  }

 private:
  std::uint8_t next() {
    return position_ < script_.size() ? static_cast<std::uint8_t>(script_[position_++]) : std::uint8_t{0};
  }

  void act(std::uint8_t op) {
    auto& wire = parties_.wire;
    switch (op % 8) {
      case 0:
        return parties_.deliver();
      case 1:
        return change();
      case 2:
        if (!wire.empty()) wire.pop_front();
        return;
      case 3:
        if (!wire.empty()) wire.push_back(wire.front());
        return parties_.deliver();
      case 4:
        if (!wire.empty()) wire.push_back(std::move(wire.front())), wire.pop_front();
        return;
      case 5:
        return parties_.wait();
      case 6:
        return parties_.leave(ClientId(next() % SecureParties::kMembers));
      default:
        return op >= 128 ? parties_.sum(next()) : claim();
    }
  }

  // Changes one byte of the first message, if the result still decodes.
  void change() {
    auto& wire = parties_.wire;
    if (wire.empty()) return;
    SecureParties::OnTheWire one = std::move(wire.front());
    wire.pop_front();
    std::string bytes = protocol::encode(one.message);
    const std::size_t place = (std::size_t{next()} << 8 | next()) % bytes.size();
    bytes[place] = static_cast<char>(bytes[place] ^ static_cast<char>(next()));
    auto changed = protocol::decode(protocol::type_of(one.message), std::as_bytes(std::span(bytes)));
    if (!changed) return;
    one.message = std::move(*changed);
    parties_.pass(one);
  }
  // Sends the survivors that a lying coordinator claims.
  void claim() {
    const std::uint32_t client = next() % SecureParties::kMembers;
    const std::uint8_t who = next();
    protocol::SecureSurvivors survivors{parties_.session(), {}};
    for (std::uint32_t i = 0; i < SecureParties::kMembers; ++i)
      if ((who >> i & 1U) != 0) survivors.numbers.push_back(i);
    parties_.wire.push_front({true, client, survivors});
    parties_.deliver();
  }

  std::span<const std::byte> script_;
  std::size_t position_ = 0;
  SecureParties parties_;
};

inline void feed_secure_session(std::span<const std::byte> script) { SecureScript(script).run(); }

}  // namespace fedge::fuzz
