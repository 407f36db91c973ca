// What operators see of uploads and downloads, as the coordinator's chunk sources, sinks and Uploads count
// it.
#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/document.h"
#include "core/platform/thread_pool.h"
#include "protocol/chunks/sender.h"
#include "server/coordinator/counted_chunks.h"
#include "server/coordinator/detail/upload_turns.h"
#include "server/coordinator/uploads.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

constexpr std::uint32_t kChunk = 4096;  // bytes

// Values as a manifest describes them, in a store.
struct StoredPayload {
  explicit StoredPayload(std::size_t values, const Digest& layout = {}) {
    protocol::Manifest shape{.layout = layout,
                             .coverage = Coverage::all(values),
                             .payload_size = values * sizeof(float),
                             .chunk_size = kChunk};
    object = *store->build(shape, [](std::size_t chunk, std::span<std::byte> out) {
      std::fill(out.begin(), out.end(), std::byte(chunk % 2));
      return Result<void>();
    });
  }
  const protocol::Manifest& manifest() const { return object->manifest(); }
  std::vector<std::byte> chunk(std::size_t index) const {
    std::vector<std::byte> bytes(manifest().chunk_length(index));
    REQUIRE(object->read(index, bytes));
    return bytes;
  }

  std::unique_ptr<protocol::ChunkStore> store = protocol::make_memory_chunk_store(16 << 20);
  std::shared_ptr<protocol::StoredObject> object;
};

std::vector<Transfers::Listed> list_of(const Transfers& transfers) {
  return transfers.list(0, 1000, [](const TransferFacts&) { return true; });
}

// A model of four chunks, the last one shorter, that one client may fetch.
struct ServedModel {
  StoredPayload model{3 * kChunk / sizeof(float) + 10};
  std::shared_ptr<Transfers> transfers = std::make_shared<Transfers>();
  RunTransfers run{transfers, RunNumber(1), "default"};
  std::shared_ptr<Bytes> traffic = std::make_shared<Bytes>();
  protocol::ChunkSender sender;

  ServedModel() {
    const auto shown =
        run.open(ClientId(7), {RoundNumber(1), {}}, TransferObject::kModel, model.manifest().payload_size);
    sender.serve(model.manifest(), std::make_shared<CountedSource>(model.object, traffic, shown));
  }
  void request(std::uint32_t first, std::uint32_t count = 1) {
    REQUIRE(sender.request({model.manifest().id(), first, count}));
  }
  // Sends a requested chunk as a link does: it may read parts of it, and reports when it is written.
  void begin() {
    due = std::get<protocol::ChunkSender::Due>(*sender.next());
    std::vector<std::byte> part(due.length / 2);
    REQUIRE(due.source->read_part(due.chunk.index, 0, part));
    REQUIRE(due.source->read_part(due.chunk.index, part.size(), part));
  }
  void finish() { due.source->sent(due.chunk.index, due.length + 50); }
  std::vector<Transfers::Listed> list() const { return list_of(*transfers); }

  protocol::ChunkSender::Due due;
};

// A link whose other end is the test: it delivers chunks of what is fetched.
class DeliveringLink final : public protocol::Link {
 public:
  // The other end sends this chunk.
  Result<void> deliver(const StoredPayload& payload, std::size_t chunk) {
    const auto sink = fetches.at(payload.manifest().id()).first;
    return sink->has(chunk) ? Result<void>() : sink->write(chunk, payload.chunk(chunk));
  }
  void end(const protocol::Manifest& manifest, const Result<void>& outcome) {
    const auto node = fetches.extract(manifest.id());
    REQUIRE_FALSE(node.empty());
    node.mapped().second(outcome);
  }
  bool fetches_it(const StoredPayload& payload) const { return fetches.contains(payload.manifest().id()); }

  const PublicKey& peer() const override { return key_; }
  const PublicKey& own_key() const override { return key_; }
  std::string peer_address() const override { return "127.0.0.1:40000"; }
  void set_callbacks(protocol::LinkCallbacks) override {}
  void authorise() override {}
  void send(const protocol::Message&) override {}
  void serve(const protocol::Manifest&, std::shared_ptr<protocol::ChunkSource>) override {}
  void stop_serving(const protocol::ObjectId&) override {}
  void fetch(const protocol::Manifest& manifest, std::shared_ptr<protocol::ChunkSink> sink,
             std::function<void(Result<void>)> done) override {
    fetches[manifest.id()] = {std::move(sink), std::move(done)};
  }
  void cancel_fetch(const protocol::ObjectId& id) override { fetches.erase(id); }
  Result<void> exchange(const protocol::Manifest&, std::shared_ptr<protocol::ChunkSource>,
                        std::shared_ptr<protocol::ChunkSink>, protocol::ExchangeCallbacks) override {
    return {};
  }
  void end_exchange(const protocol::ObjectId&) override {}
  bool ask(const protocol::Chunk&) override { return false; }
  bool send_chunk(const protocol::Chunk&) override { return false; }
  bool refuse_chunk(const protocol::Chunk&, const Error&) override { return false; }
  std::size_t queued() const override { return 0; }
  protocol::Traffic traffic() const override { return {}; }
  void close(const std::string&) override {}

  std::map<protocol::ObjectId,
           std::pair<std::shared_ptr<protocol::ChunkSink>, std::function<void(Result<void>)>>>
      fetches;

 private:
  PublicKey key_;
};

// The uploads of a softmax run.
struct Uploading {
  test::TemporaryDirectory data;
  run::RunConfig config;
  std::unique_ptr<learn::Model> model;
  ThreadPool pool{1};
  std::unique_ptr<protocol::ChunkStore> models = protocol::make_memory_chunk_store(16 << 20);
  std::unique_ptr<protocol::ChunkStore> updates;
  std::optional<RunState> state;
  boost::asio::io_context io;
  std::shared_ptr<Transfers> transfers = std::make_shared<Transfers>();
  std::shared_ptr<RunTransfers> run = std::make_shared<RunTransfers>(transfers, RunNumber(1), "default");
  std::vector<std::pair<std::uint32_t, bool>> outcomes;  // client, accepted
  std::shared_ptr<Uploads> uploads;
  protocol::Worker worker;  // ends first

  explicit Uploading(std::size_t room = 16 << 20) : updates(protocol::make_memory_chunk_store(room)) {
    test::write_tiny_dataset(data);
    const auto document = config::parse_toml(
        "[data]\ndirectory = \"" + data.path().string() + "\"\n[model]\nkind = \"softmax\"\n", "run.toml");
    config = *run::read_run_config(*document);
    const auto info = learn::describe(config.task.data);
    REQUIRE(info);
    model = *learn::make_model(config.task.model, info->shape, info->target());
    state.emplace(*RunState::create(config, *model, nullptr, *models, pool));
    uploads = std::make_shared<Uploads>(io, worker, *updates, *state, run);
    uploads->set_callbacks({.on_outcome =
                                [this](ClientId client, TaskId, const Result<void>& outcome) {
                                  outcomes.emplace_back(client.value(), outcome.has_value());
                                },
                            .on_event = [](const Event&) {}});
  }
  ~Uploading() { uploads->stop(); }

  StoredPayload update() const { return StoredPayload(model->layout()->size(), model->layout()->hash()); }
  void fetch(std::uint32_t client, const StoredPayload& update, const std::shared_ptr<DeliveringLink>& link) {
    uploads->fetch({ClientId(client), {.round = RoundNumber(1), .update = update.manifest()}}, link);
  }
  std::vector<Transfers::Listed> list() const { return list_of(*transfers); }
  // Waits for the worker's answer about an update.
  void wait_for_outcome() {
    while (outcomes.empty()) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(100));
    }
  }
  void poll() {
    io.restart();
    io.poll();
  }
};

}  // namespace

TEST_CASE(
    "counted transfers: a download counts the chunks that were sent, each once, and ends with the last") {
  ServedModel served;
  CHECK(served.list().empty());
  served.request(0, 4);
  CHECK(served.list().empty());
  served.begin();
  REQUIRE(served.list().size() == 1);
  CHECK(served.list().front().done == 0);
  CHECK(served.list().front().facts.bytes == 3 * kChunk + 40);
  served.finish();
  CHECK(served.list().front().done == kChunk);
  for (int chunk = 1; chunk < 4; ++chunk) {
    CHECK(served.list().front().done == static_cast<std::uint64_t>(chunk) * kChunk);
    served.begin();
    served.finish();
  }
  CHECK(served.list().empty());
}

TEST_CASE(
    "counted transfers: a client that requests one chunk again and again moves its transfer no further") {
  ServedModel served;
  for (int again = 0; again < 500; ++again) {
    served.request(1);
    served.begin();
    served.finish();
    REQUIRE(served.list().size() == 1);
    CHECK(served.list().front().done == 2 * kChunk);  // as if it had the first chunk
  }
  CHECK(served.traffic->value() == 500 * (kChunk + 50));  // the traffic counts each of them
  served.request(0);
  served.begin();
  served.finish();
  CHECK(served.list().front().done == 2 * kChunk);
}

TEST_CASE("counted transfers: a client that disconnects while a chunk is written to it has no transfer") {
  ServedModel served;
  served.request(2, 2);
  served.begin();
  served.run.end(ClientId(7));
  CHECK(served.list().empty());
  served.finish();
  served.begin();  // the link flushes what it had begun
  served.finish();
  CHECK(served.list().empty());
}

TEST_CASE("counted transfers: an upload counts the chunks that are here, and ends when all are") {
  Uploading scene;
  const StoredPayload update = scene.update();
  const auto link = std::make_shared<DeliveringLink>();
  const std::size_t chunks = update.manifest().chunk_count();
  REQUIRE(chunks >= 3);
  scene.fetch(7, update, link);
  REQUIRE(scene.list().size() == 1);
  CHECK(scene.list().front().facts.bytes == update.manifest().payload_size);
  CHECK(scene.list().front().facts.object == TransferObject::kUpdate);
  CHECK(scene.list().front().wait == TransferWait::kNone);
  std::uint64_t done = 0;
  for (std::size_t chunk = chunks; chunk-- > 0;) {  // in any order
    CHECK(scene.list().front().done == done);
    REQUIRE(link->deliver(update, chunk));
    done += update.manifest().chunk_length(chunk);
  }
  CHECK(scene.list().front().done == update.manifest().payload_size);
  link->end(update.manifest(), {});
  CHECK(scene.list().empty());
  scene.wait_for_outcome();
  CHECK(scene.outcomes.front() == std::pair(7U, true));
  // The same update once more, as after a restart of its client: everything is here.
  scene.fetch(7, update, link);
  REQUIRE(scene.list().size() == 1);
  CHECK(scene.list().front().done == update.manifest().payload_size);
  link->end(update.manifest(), {});
  CHECK(scene.list().empty());
}

TEST_CASE("counted transfers: an upload that fails, is discarded or stopped is over") {
  Uploading scene;
  const StoredPayload update = scene.update();
  const auto link = std::make_shared<DeliveringLink>();
  const auto begin = [&] {
    scene.fetch(7, update, link);
    REQUIRE(link->deliver(update, 0));
    REQUIRE(scene.list().size() == 1);
    CHECK(scene.list().front().done >= kChunk);
  };
  begin();
  link->end(update.manifest(), Error{ErrorCode::kCorrupt, "a wrong hash"});
  CHECK(scene.list().empty());
  CHECK(scene.outcomes == std::vector{std::pair(7U, false)});
  begin();
  const auto sink = link->fetches.at(update.manifest().id()).first;
  scene.uploads->discard(ClientId(7));
  CHECK(scene.list().empty());
  REQUIRE(sink->write(1, update.chunk(1)));  // a chunk that was on its way
  CHECK(scene.list().empty());
  begin();
  scene.uploads->stop();
  scene.run->end_all();  // as RunHost::leave() does
  CHECK(scene.list().empty());
}

TEST_CASE("counted transfers: a client that disconnects uploads nothing, and then continues where it was") {
  Uploading scene;
  const StoredPayload update = scene.update();
  auto link = std::make_shared<DeliveringLink>();
  scene.fetch(7, update, link);
  REQUIRE(link->deliver(update, 1));
  const std::uint64_t number = scene.list().front().number;
  SUBCASE("the link reports it first") {
    link->end(update.manifest(), Error{ErrorCode::kUnavailable, "the connection is closed"});
    CHECK(scene.list().empty());
    scene.run->end(ClientId(7));
  }
  SUBCASE("the coordinator notices it first") {
    scene.run->end(ClientId(7));
    CHECK(scene.list().empty());
    link->end(update.manifest(), Error{ErrorCode::kUnavailable, "the connection is closed"});
  }
  CHECK(scene.list().empty());
  link = std::make_shared<DeliveringLink>();
  scene.fetch(7, update, link);
  REQUIRE(scene.list().size() == 1);
  CHECK(scene.list().front().done == update.manifest().chunk_length(1));
  CHECK(scene.list().front().number > number);
  REQUIRE(link->deliver(update, 1));
  CHECK(scene.list().front().done == update.manifest().chunk_length(1));
}

TEST_CASE(
    "counted transfers: uploads beyond the places wait for their turn, unless their client disconnects") {
  Uploading scene;
  std::vector<StoredPayload> sent;
  const auto link = std::make_shared<DeliveringLink>();
  for (std::uint32_t client = 0; client < kUploadsAtOnce + 2; ++client) {
    // Each client sends another update, because one link carries an object once.
    sent.push_back(StoredPayload(2000 + client));
    scene.fetch(client, sent.back(), link);
  }
  auto list = scene.list();
  REQUIRE(list.size() == kUploadsAtOnce + 2);
  CHECK(list[kUploadsAtOnce - 1].wait == TransferWait::kNone);
  CHECK(list[kUploadsAtOnce].wait == TransferWait::kTurn);
  CHECK(list[kUploadsAtOnce + 1].wait == TransferWait::kTurn);
  CHECK(list[kUploadsAtOnce].done == 0);
  scene.run->end(ClientId(kUploadsAtOnce));
  CHECK(scene.list().size() == kUploadsAtOnce + 1);
  // Two places become free. The client that has disconnected gets one, and is not listed for that.
  link->end(sent[0].manifest(), Error{ErrorCode::kCorrupt, "a wrong hash"});
  link->end(sent[1].manifest(), Error{ErrorCode::kCorrupt, "a wrong hash"});
  scene.poll();
  CHECK(link->fetches_it(sent[kUploadsAtOnce]));
  list = scene.list();
  REQUIRE(list.size() == kUploadsAtOnce - 1);
  CHECK(list.back().facts.client == ClientId(kUploadsAtOnce + 1));
  CHECK(list.back().wait == TransferWait::kNone);
}

TEST_CASE("counted transfers: an upload for which the disk is full waits for it") {
  Uploading scene(kChunk);
  const StoredPayload update = scene.update();
  const auto link = std::make_shared<DeliveringLink>();
  scene.fetch(7, update, link);
  CHECK_FALSE(link->fetches_it(update));
  REQUIRE(scene.list().size() == 1);
  CHECK(scene.list().front().wait == TransferWait::kDisk);
  CHECK(scene.list().front().done == 0);
  scene.uploads->discard(ClientId(7));
  CHECK(scene.list().empty());
}

}  // namespace fedge::server
