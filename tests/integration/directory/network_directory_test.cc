// The directory on real OpenDHT nodes on loopback.
#include <opendht/dhtrunner.h>
//
#include "dht/network_directory.h"

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <cstring>

#include "core/platform/calendar.h"
#include "dht/node/directory_node.h"
#include "dht/opendht/entrance.h"
#include "tests/support/directory_suite.h"

namespace fedge::dht {
namespace {

// Three Fedge nodes, and a hostile one that stores and returns everything.
class NetworkHarness final : public suite::Harness {
 public:
  NetworkHarness() {
    for (std::size_t i = 0; i < kPlaces; ++i) {
      NetworkOptions options{.listen = {"127.0.0.1", 0}};
      if (i > 0) options.bootstrap = {{"127.0.0.1", nodes_[0]->port()}};
      options.now = [this] { return now(); };
      options.post = [this](std::function<void()> what) { boost::asio::post(io_, std::move(what)); };
      auto node = open_network_directory(options);
      REQUIRE(node);
      nodes_.push_back(std::move(*node));
    }
    start_hostile();
    REQUIRE(wait([this] {
      return std::all_of(nodes_.begin(), nodes_.end(),
                         [](const auto& node) { return node->status().good_nodes >= 1; });
    }));
  }
  ~NetworkHarness() override { hostile_.join(); }

  Directory& at(std::size_t place) override { return *nodes_[place]; }
  Time now() const override {
    return Time(std::chrono::system_clock::now().time_since_epoch()) + Duration(passed_.load());
  }
  void pass(Duration duration) override {
    passed_ += duration.count();
    for (const auto& node : nodes_) node->advance(now());
  }
  bool wait(const std::function<bool()>& condition) override {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      io_.run_for(std::chrono::milliseconds(5));
      for (const auto& node : nodes_) node->advance(now());
    }
    return true;
  }
  void plant(const Record& claimed, std::vector<std::byte> bytes) override {
    const auto value = some_value(0xfed1, bytes.size());
    std::memcpy(value->data.data(), bytes.data(), bytes.size());
    plant(claimed.key, value);
  }
  std::shared_ptr<::dht::Value> some_value(::dht::ValueType::Id type, std::size_t size) {
    const auto value = std::make_shared<::dht::Value>();
    value->id = 1000 + planted_++;
    value->type = type;
    value->data.resize(size);
    return value;
  }
  void plant(const Key& key, const std::shared_ptr<::dht::Value>& value) {
    std::atomic<bool> done{false};
    hostile_.put(hash_of(key), value, [&](bool) { done = true; });
    REQUIRE(wait([&] { return done.load(); }));
  }
  // Returns the record's value as the hostile node sees it.
  std::shared_ptr<::dht::Value> value_of(const Record& record) {
    std::shared_ptr<::dht::Value> found;
    std::atomic<bool> done{false};
    hostile_.get(
        hash_of(record.key),
        [&](const std::vector<std::shared_ptr<::dht::Value>>& values) {
          found = values.at(0);
          return false;
        },
        [&](bool) { done = true; });
    REQUIRE(wait([&] { return done.load(); }));
    REQUIRE(found);
    return found;
  }
  FlawCounts refused() override {
    FlawCounts sum;
    for (const auto& node : nodes_)
      for (std::size_t flaw = 0; flaw < kFlaws; ++flaw)
        sum.counts.at(flaw) += node->ignored().counts.at(flaw);
    return sum;
  }
  std::uint64_t refused_stores() const {
    std::uint64_t sum = 0;
    for (const auto& node : nodes_) sum += node->status().refused_stores;
    return sum;
  }
  std::uint64_t stored_bytes() const {
    std::uint64_t most = 0;
    for (const auto& node : nodes_) most = std::max<std::uint64_t>(most, node->status().stored_bytes);
    return most;
  }
  std::uint64_t stored_records() const {
    std::uint64_t most = 0;
    for (const auto& node : nodes_) most = std::max<std::uint64_t>(most, node->status().stored_records);
    return most;
  }

 private:
  static ::dht::InfoHash hash_of(const Key& key) { return {key.data(), ::dht::InfoHash::size()}; }
  void start_hostile() {
    ::dht::DhtRunner::Config config;
    config.dht_config.node_config.network = kNetwork;
    config.bind4.setFamily(AF_INET);
    config.bind4.setAddress("127.0.0.1");
    config.bind4.setPort(0);
    hostile_.run(config, {});
    const auto everything = [](auto&&...) { return true; };
    hostile_.registerType({0xfed1, "anything", std::chrono::minutes(10), everything, everything});
    hostile_.bootstrap("127.0.0.1", std::to_string(nodes_[0]->port()));
  }

  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::atomic<Duration::rep> passed_{0};
  std::vector<std::unique_ptr<NetworkDirectory>> nodes_;
  ::dht::DhtRunner hostile_;
  std::uint64_t planted_ = 0;
};

std::vector<std::byte> forged(const Record& record) {
  std::vector<std::byte> bytes = record.bytes;
  bytes.back() ^= std::byte{1};  // corrupts the signature
  return bytes;
}

}  // namespace

TEST_CASE("A6: network directory: nodes keep none of a hostile node's values that are no records") {
  NetworkHarness world;
  const Record mine = suite::announcement(world, 1, 8);
  CHECK_FALSE(suite::publish(world, 0, mine));
  CHECK(suite::comes_to_be(world, mine.key, {mine}));
  world.plant(mine, forged(mine));
  CHECK(world.wait([&] { return world.refused_stores() >= 1; }));
  CHECK(world.stored_records() == 1);
}

TEST_CASE(
    "A6: network directory: what a hostile node hangs on to a record neither replaces nor keeps it out") {
  std::shared_ptr<::dht::Value> value;
  std::optional<Record> mine;
  {
    NetworkHarness world;
    mine = suite::announcement(world, 1, 8);
    CHECK_FALSE(suite::publish(world, 0, *mine));
    CHECK(suite::comes_to_be(world, mine->key, {*mine}));
    value = world.value_of(*mine);
  }
  NetworkHarness world;  // other nodes, which do not have the record yet
  value->user_type = "text/plain";
  world.plant(mine->key, value);
  CHECK(world.wait([&] { return world.refused_stores() >= 1; }));
  CHECK(world.stored_records() == 0);
  CHECK_FALSE(suite::publish(world, 0, *mine));
  CHECK(suite::comes_to_be(world, mine->key, {*mine}));
}

TEST_CASE("A6: network directory: a record is found among many small values that are none") {
  NetworkHarness world;
  const Record mine = suite::announcement(world, 1, 8);
  CHECK_FALSE(suite::publish(world, 0, mine));
  for (int i = 0; i < 800; ++i) world.plant(mine, {std::byte{7}});
  CHECK(suite::comes_to_be(world, mine.key, {mine}));
}

TEST_CASE("A6: network directory: what others lay down in a node is bounded, and costs no record its place") {
  NetworkHarness world;
  const Record mine = suite::announcement(world, 1, 8);
  CHECK_FALSE(suite::publish(world, 0, mine));
  for (int i = 0; i < 320; ++i) world.plant(mine.key, world.some_value(0x1234, 60'000));
  CHECK(world.stored_bytes() > 8'000'000);  // values of foreign types are stored
  CHECK(world.stored_bytes() <= 16 << 20);
  CHECK(suite::comes_to_be(world, mine.key, {mine}));
}

TEST_CASE(
    "network directory: who finds nobody knocks again, ever more rarely, and soon once somebody was there") {
  Entrance entrance;
  const Time start(seconds(1'000'000));
  bool alone = true;
  const auto knocks_at = [&](double second) {
    return entrance.is_time(start + seconds(second), [&] { return alone; });
  };
  const std::vector<double> tries = {0, 1, 3, 7, 15, 31, 63, 123, 183};
  for (std::size_t i = 0; i < tries.size(); ++i) {
    CAPTURE(tries[i]);
    if (i > 0) CHECK_FALSE(knocks_at(tries[i] - 0.25));
    CHECK(knocks_at(tries[i]));
  }
  alone = false;
  CHECK_FALSE(knocks_at(243));
  alone = true;
  CHECK(knocks_at(244));
  CHECK(knocks_at(-900'000));  // the calendar was set back
}

// Nodes as the daemons configure them.
struct Nodes {
  boost::asio::io_context io;

  std::unique_ptr<DirectoryNode> open(std::uint16_t port, const std::vector<protocol::Address>& bootstrap) {
    auto node = DirectoryNode::open(io, {.listen = {"127.0.0.1", port}, .bootstrap = bootstrap});
    REQUIRE(node);
    return std::move(*node);
  }
  bool run(double lasts, const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + seconds(lasts);
    while (!done() && std::chrono::steady_clock::now() < until) io.run_for(std::chrono::milliseconds(20));
    return done();
  }
};

TEST_CASE("network directory: a node enters by name, also when its bootstrap node starts after it") {
  Nodes nodes;
  const std::uint16_t port = nodes.open(0, {})->directory().port();  // a port without a listener
  const auto node = nodes.open(0, {{"no.such.name.invalid", 7433}, {"localhost", port}});
  const auto has_entered = [&] { return node->directory().status().good_nodes > 0; };
  CHECK_FALSE(nodes.run(2, has_entered));
  const auto first = nodes.open(port, {});
  CHECK(nodes.run(60, has_entered));
}

TEST_CASE("network directory: a name server that hangs is asked once, and keeps nobody from an address") {
  Nodes nodes;
  const auto first = nodes.open(0, {});
  std::vector<NetworkOptions::Resolved> asked;
  Time calendar = calendar_time();
  const protocol::Address there{"127.0.0.1", first->directory().port()}, nowhere{"127.0.0.1", 9};
  for (const protocol::Address& address : {there, nowhere}) {
    asked.clear();
    NetworkOptions options{.listen = {"127.0.0.1", 0}, .bootstrap = {{"hangs.example", 7433}, address}};
    options.now = calendar_time;
    options.post = [&](std::function<void()> what) { boost::asio::post(nodes.io, std::move(what)); };
    options.resolve = [&](const protocol::Address& place, NetworkOptions::Resolved found) {
      CHECK(place.host == "hangs.example");
      asked.push_back(std::move(found));
    };
    const auto node = open_network_directory(options);
    REQUIRE(node);
    CHECK(asked.size() == 1);
    if (address == there) CHECK(nodes.run(30, [&] { return (*node)->status().good_nodes > 0; }));
    if (address == there) continue;
    for (int i = 0; i < 5; ++i) (*node)->advance(calendar += seconds(100));
    CHECK(asked.size() == 1);
    asked[0]({});
    (*node)->advance(calendar += seconds(100));
    CHECK(asked.size() == 2);
  }
  asked[0]({});  // too late: the directory was destroyed
}

TEST_CASE(
    "network directory: what is published while a node enters is published, and refused where it cannot "
    "enter") {
  Nodes nodes;
  const auto first = nodes.open(0, {});
  const auto publish_at_once = [&](std::uint16_t port) {
    const auto node = nodes.open(0, {{"127.0.0.1", port}});
    const auto record = make_record(suite::key_number(1), {1, calendar_time() + seconds(60)},
                                    NodeStatus{RunId(7), {.round = 2, .labels = {}}});
    REQUIRE(record);
    std::optional<Result<void>> kept;
    node->directory().publish(*record, [&](const Result<void>& result) { kept = result; });
    CHECK_FALSE(kept);
    REQUIRE(nodes.run(60, [&] { return kept.has_value(); }));
    return *kept;
  };
  CHECK(publish_at_once(first->directory().port()));
  const auto refused = publish_at_once(9);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnavailable);
}

FEDGE_DIRECTORY_SUITE("network directory", NetworkHarness)

}  // namespace fedge::dht
