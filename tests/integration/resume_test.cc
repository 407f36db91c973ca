// An upload resumes after its link is cut; deferred clients come back.
#include <boost/asio/post.hpp>

#include "tests/integration/hostile_peer.h"

using namespace fedge;
using test::Federation;
using test::HostilePeer;

namespace {

// So large that a link cannot buffer a whole update: 814,090 parameters, 50 chunks.
constexpr std::size_t kChunk = 64 << 10;
const std::vector<std::string> kSettings = {"run.chunk_size=65536", "run.rounds=1", "model.kind=mlp",
                                            "model.hidden=[1024]"};

// Counts the sent bytes and cuts the link after a few chunks.
class CountingSource final : public protocol::ChunkSource {
 public:
  CountingSource(std::shared_ptr<ParameterVector> vector, std::function<void()> cut)
      : inner_(std::move(vector), kChunk), cut_(std::move(cut)) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    length_ = from + out.size();
    return inner_.read_part(chunk, from, out);
  }
  void sent(std::size_t, std::size_t) override {
    bytes += length_;
    if (cut_ && bytes >= 3 * kChunk) std::exchange(cut_, nullptr)();
  }
  std::size_t bytes = 0;

 private:
  std::size_t length_ = 0;  // of the current chunk
  test::VectorSource inner_;
  std::function<void()> cut_;
};

}  // namespace

TEST_CASE("upload: after a cut the second offer of an update sends what had not arrived, and no more") {
  Federation f(1, kSettings);
  HostilePeer peer(f);
  peer.join(f.token());
  REQUIRE(*peer.answer);
  peer.wait_for_task(1);
  const auto update = peer.zero_update();
  for (std::size_t i = 0; i < update->values().size(); ++i)
    update->values()[i] = static_cast<float>(i % 97) * 1e-4F;  // all chunks differ
  const auto offer = peer.offer(update);
  const std::size_t all = offer.update.payload_size;
  REQUIRE(all == std::size_t{4} * 814'090);

  const auto first = std::make_shared<CountingSource>(
      update, [&] { boost::asio::post(f.io, [&] { peer.link->close("cut"); }); });
  peer.link->serve(offer.update, first);
  peer.link->send(offer);
  f.run_until([&] { return peer.closed && f.reported("client.dropped"); });
  REQUIRE(first->bytes < all);

  peer.task.reset();
  peer.greet("");
  REQUIRE(*peer.answer);
  peer.wait_for_task(1);
  const auto second = std::make_shared<CountingSource>(update, nullptr);
  peer.link->serve(offer.update, second);
  peer.link->send(offer);
  f.run_until([&] { return peer.verdict.has_value(); });
  CHECK(peer.verdict->accepted);
  CHECK(second->bytes == all - first->bytes);
  f.run_to_the_end();
  CHECK(f.rounds[0].clients_completed == 1);
}

TEST_CASE("upload: after a cut another update may be offered, and only that one counts") {
  Federation f(1, kSettings);
  HostilePeer peer(f);
  peer.join(f.token());
  peer.wait_for_task(1);
  const auto update = peer.zero_update();
  update->values()[0] = 1e-3F;
  const auto offer = peer.offer(update);
  peer.link->serve(offer.update, std::make_shared<CountingSource>(update, [&] {
                     boost::asio::post(f.io, [&] { peer.link->close("cut"); });
                   }));
  peer.link->send(offer);
  f.run_until([&] { return peer.closed && f.reported("client.dropped"); });
  peer.task.reset();
  peer.greet("");
  peer.wait_for_task(1);
  const auto other = peer.zero_update();
  for (float& value : other->values()) value = 0.25F;
  peer.send_update(peer.offer(other), other);
  CHECK(peer.verdict->accepted);
  f.run_to_the_end();
  // The run's seed determines the initial model; a second run without any update returns it.
  Federation still(1, kSettings);
  HostilePeer idle(still);
  idle.join(still.token());
  idle.wait_for_task(1);
  idle.send_update(idle.offer(idle.zero_update()), idle.zero_update());
  still.run_to_the_end();
  const auto moved = (*f.final_models)->front().values.values();
  const auto kept = (*still.final_models)->front().values.values();
  for (std::size_t i = 0; i < moved.size(); i += 7850) CHECK(moved[i] - kept[i] == doctest::Approx(0.25));
}

TEST_CASE("arrivals: who comes when there are too many is told when to come back, and does") {
  Federation f(3, {"run.wait_for_clients=3"},
               {.per_second = 20, .burst = 1, .shortest = seconds(0.05), .longest = seconds(1)});
  for (int i = 0; i < 3; ++i) f.add_client();
  f.run_to_the_end();
  CHECK(f.reported("client.deferred"));
  CHECK(f.rounds.back().clients_completed == 3);
}

TEST_CASE("arrivals: a coordinator that stops says how long its clients should stay away") {
  Federation f(1, {}, {.per_second = 0.5, .burst = 10, .shortest = seconds(0.05), .longest = seconds(100)});
  HostilePeer peer(f);
  peer.join(f.token());
  REQUIRE(*peer.answer);
  peer.wait_for_task(1);
  f.coordinator->stop("told to");
  f.run_until([&] { return peer.closed; });
  CHECK_FALSE(peer.ended);  // the run continues when the coordinator is back
  REQUIRE(peer.goodbye);
  CHECK(peer.goodbye->code == ErrorCode::kUnavailable);
  CHECK(peer.goodbye->retry_after == seconds(2));  // one client, at half a client a second
}
