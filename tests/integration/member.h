// Creates an admitted client without running a program.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "client/membership.h"
#include "protocol/session/endpoint.h"
#include "server/data_directory.h"
#include "server/enrolment.h"

namespace fedge::test {

// Creates the state of the coordinator's next client number; returns the secret that was redeemed.
inline std::string make_member(const std::filesystem::path& coordinator, const protocol::Address& address,
                               const std::filesystem::path& state) {
  const auto coordinator_key = server::open_coordinator_key(coordinator);
  REQUIRE(coordinator_key);
  const auto key = client::open_node_key(state);
  REQUIRE(key);
  server::Enrolment enrolment(coordinator);
  const auto token = enrolment.create_token(0, std::chrono::hours(1'000'000));
  REQUIRE(token);
  const auto number = enrolment.redeem({.secret = token->secret, .key = key->public_key()});
  REQUIRE(number);
  REQUIRE(client::write_membership(state, {{address}, coordinator_key->public_key(), number->client}));
  return token->secret;
}
inline std::string make_member(const std::filesystem::path& coordinator, const std::string& address,
                               const std::filesystem::path& state) {
  const auto parsed = protocol::parse_address(address);
  REQUIRE(parsed);
  return make_member(coordinator, *parsed, state);
}

}  // namespace fedge::test
