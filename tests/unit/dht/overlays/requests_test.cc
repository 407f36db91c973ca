#include "dht/overlays/requests.h"

#include <doctest/doctest.h>

#include <map>

#include "core/rng.h"

namespace fedge::dht {

TEST_CASE("overlay requests: each is found by its number until it ends, however many are open") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RequestTable table;
    std::map<std::uint32_t, Id> open;
    std::uint32_t last = 0;
    for (Id key = 0; key < 300; ++key) {
      if (open.empty() || rng.below(5) > 1) {
        const std::uint32_t rpc = table.add({.key = key});
        CHECK(rpc > last);
        open[last = rpc] = key;
        continue;
      }
      const auto ended = std::next(open.begin(), static_cast<std::ptrdiff_t>(rng.below(open.size())));
      CHECK(table.take(ended->first).key == ended->second);
      CHECK(table.find(ended->first) == nullptr);
      open.erase(ended);
      for (const auto& [rpc, value] : open) {
        REQUIRE(table.find(rpc) != nullptr);
        CHECK(table.find(rpc)->key == value);
      }
    }
    CHECK(table.find(0) == nullptr);
    CHECK(table.find(last + 1) == nullptr);
    table.clear();
    for (const auto& [rpc, value] : open) CHECK(table.find(rpc) == nullptr);
    CHECK(table.add({}) == last + 1);  // answers to earlier requests do not match later ones
  }
}

TEST_CASE("overlay tokens: a message shows the last token of its receiver, of the last 512 receivers") {
  AddressTokens tokens;
  const auto shown_to = [&](Address address) {
    Message message;
    message.to.address = address;
    tokens.show(message);
    return message.token;
  };
  for (Address address = 0; address < AddressTokens::kMost; ++address)
    tokens.remember(address, 100 + address);
  CHECK(shown_to(0) == 100);
  tokens.remember(0, 7);
  CHECK(shown_to(0) == 7);
  tokens.remember(9999, 8);
  CHECK(shown_to(9999) == 8);
  CHECK(shown_to(1) == 0);  // the oldest
  CHECK(shown_to(2) == 102);
  tokens.clear();
  CHECK(shown_to(2) == 0);
}

TEST_CASE("overlay tokens: a request without a token is repeated at most once, and not after its answer") {
  AddressTokens tokens;
  for (std::uint32_t rpc : {1U, 2U}) {
    Message request;
    request.rpc = rpc;
    request.key = 10 * rpc;
    tokens.keep(request);
  }
  const auto again = tokens.take(1);
  REQUIRE(again);
  CHECK(again->key == 10);
  CHECK_FALSE(tokens.take(1));
  tokens.forget(2);
  CHECK_FALSE(tokens.take(2));
}

}  // namespace fedge::dht
