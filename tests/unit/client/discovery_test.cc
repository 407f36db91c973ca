#include "client/discovery/discovery.h"

#include <doctest/doctest.h>

#include <array>
#include <boost/asio/io_context.hpp>

namespace fedge::client {
namespace {

SecretKey key_of_node(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = number;
  return SecretKey::from_seed(seed);
}

dht::Record announcement(const SecretKey& key, const std::string& run_name) {
  const auto record = dht::make_record(
      key, {1, Time(seconds(100))},
      dht::Announcement{.addresses = {{"192.0.2.1", 7433}}, .run_name = run_name, .run = RunId(1)});
  REQUIRE(record);
  return *record;
}

// A directory that returns the records in `there`, and adds `with_each` to its ignored records at each
// lookup.
class Scripted final : public dht::Directory {
 public:
  std::vector<dht::Record> there;
  dht::FlawCounts with_each;
  std::vector<dht::Key> asked;

  void publish(const dht::Record& /*record*/, Done done) override { done({}); }
  void lookup(const dht::Key& key, Found found) override {
    asked.push_back(key);
    for (std::size_t i = 0; i < dht::kFlaws; ++i) ignored_.counts.at(i) += with_each.counts.at(i);
    std::vector<dht::Record> under;
    for (const dht::Record& record : there)
      if (record.key == key) under.push_back(record);
    found(under);
  }
  Result<dht::Subscription> watch(Watch /*watch*/, OnChange /*on_change*/) override {
    return dht::Subscription();
  }
  void advance(Time /*now*/) override {}
  dht::FlawCounts ignored() const override { return ignored_; }

 private:
  dht::FlawCounts ignored_;
};

Result<FoundCoordinator> found(Scripted& directory, const std::string& run_name,
                               const std::optional<PublicKey>& key = std::nullopt) {
  boost::asio::io_context io;
  Result<FoundCoordinator> outcome = Error{ErrorCode::kUnsupported, "not called"};
  const auto done = [&](const Result<FoundCoordinator>& result) { outcome = result; };
  const SearchTerms terms{io, directory, seconds(0.05)};
  const auto search = key ? find_coordinator(terms, *key, done) : find_run(terms, run_name, done);
  io.run();
  return outcome;
}

}  // namespace

TEST_CASE("discovery: who knows the coordinator's key asks under it, where nobody else can write") {
  Scripted directory;
  directory.there = {announcement(key_of_node(1), "found"), announcement(key_of_node(2), "found"),
                     announcement(key_of_node(2), "")};
  const PublicKey key = key_of_node(2).public_key();
  const auto coordinator = found(directory, "", key);
  REQUIRE(coordinator);
  CHECK(coordinator->key == key);
  for (const dht::Key& asked : directory.asked) CHECK(asked == dht::coordinator_key(key));
}

TEST_CASE("discovery: of several that announce a run none is taken, and each is named") {
  Scripted directory;
  directory.there = {announcement(key_of_node(1), "found"), announcement(key_of_node(2), "found")};
  const auto several = found(directory, "found");
  CHECK(several.error().code == ErrorCode::kRefused);
  for (const std::uint8_t number : {std::uint8_t{1}, std::uint8_t{2}})
    CHECK(several.error().message.find(to_hex(key_of_node(number).public_key())) != std::string::npos);
  directory.there.pop_back();
  const auto one = found(directory, "found");
  REQUIRE(one);
  CHECK(one->addresses.front().port == 7433);
}

TEST_CASE("discovery: where nothing is found, what was ignored is said, and that a clock may be wrong") {
  Scripted directory;
  CHECK(found(directory, "found").error().message ==
        "no coordinator in the directory announces a run named 'found'");
  directory.with_each[dht::Flaw::kForged] = 1;
  const auto forged = found(directory, "found");
  CHECK(forged.error().code == ErrorCode::kNotFound);
  CHECK(forged.error().message.find("; ignored records: ") != std::string::npos);
  CHECK(forged.error().message.find(" forged") != std::string::npos);
  CHECK(forged.error().message.find("clock") == std::string::npos);
  directory.with_each[dht::Flaw::kExpired] = 1;
  const auto expired = found(directory, "", key_of_node(1).public_key());
  CHECK(expired.error().message.find("the directory has no record of the coordinator; ") == 0);
  CHECK(expired.error().message.find("check this device's clock") != std::string::npos);
}

}  // namespace fedge::client
