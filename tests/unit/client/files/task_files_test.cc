#include "client/task_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "client/local/client_memory.h"
#include "client/membership.h"
#include "core/platform/files.h"
#include "protocol/chunks/chunk_selection.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

using test::TemporaryDirectory;

constexpr std::size_t kRoom = 1 << 20;

// 3000 parameters in three chunks of 4096 bytes, the last one shorter.
std::shared_ptr<const ParameterLayout> layout() {
  auto result = std::make_shared<ParameterLayout>();
  result->add("all", {3000});
  return result;
}

std::vector<float> numbers(float first) {
  std::vector<float> values(3000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return values;
}

protocol::Manifest manifest_of(const std::vector<float>& values) {
  return protocol::make_manifest(layout()->hash(), Coverage::all(values.size()),
                                 std::as_bytes(std::span(values)), 4096);
}

void write_chunk(protocol::StoredObject& object, const std::vector<float>& values, std::size_t chunk) {
  const auto bytes =
      std::as_bytes(std::span(values)).subspan(chunk * 4096, object.manifest().chunk_length(chunk));
  REQUIRE(object.write(chunk, bytes));
}

TaskFiles::Offer whole(const protocol::Manifest& model, const std::optional<protocol::Manifest>& control) {
  return {model, control, model.coverage};
}

protocol::TrainRequest request_for(const std::vector<float>& model, RunId run = RunId(7)) {
  protocol::TrainRequest request;
  request.run = run;
  request.round = RoundNumber(3);
  request.model = manifest_of(model);
  request.coverage = Coverage::all(model.size());
  request.last_round = RoundNumber(2);
  return request;
}

OutgoingUpdate result_of(const std::vector<float>& values) {
  WorkResult result;
  result.training.samples = SampleCount(12);
  result.training.steps = 3;
  result.training.mean_loss = 0.5;
  result.training.rms_loss = 0.75;
  result.norm = 2;
  result.values = AlignedBuffer<float>(values.size());
  std::ranges::copy(values, result.values.data());
  auto update = OutgoingUpdate::in_the_clear(std::move(result), std::nullopt);
  REQUIRE(update);
  return std::move(*update);
}

std::unique_ptr<TaskFiles> open(const TemporaryDirectory& state, std::size_t room = kRoom) {
  auto files = TaskFiles::open(state.path(), room);
  REQUIRE_MESSAGE(files, files.error().message);
  return std::move(*files);
}

// The updates that a process resumes at its start, and what it logs.
struct Taken {
  std::vector<TaskFiles::Update> updates;
  std::string said;
};
Taken take_up(TaskFiles& files) {
  Taken taken;
  taken.updates = files.take_up([&](const Event& event) { taken.said += to_string(event); });
  return taken;
}

// The directory of run 7.
std::filesystem::path pending_in(const TemporaryDirectory& state) {
  return state.path() / "pending" / "0000000000000007";
}

// Changes one byte of a file.
void damage(const std::filesystem::path& file, std::int64_t position) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(position);
  const int byte = stream.get();
  stream.seekp(position);
  stream.put(static_cast<char>(byte ^ 1));
  REQUIRE(stream.good());
}

std::vector<std::filesystem::path> chunk_files(const TemporaryDirectory& state) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(chunk_cache(state.path())))
    files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("cache: a download goes on from the chunks that an earlier process has got") {
  const TemporaryDirectory state;
  const auto model = numbers(1);
  {
    auto files = open(state);
    auto download = files->download(*layout(), whole(manifest_of(model), std::nullopt));
    REQUIRE(download);
    write_chunk(*download->model, model, 1);
  }
  auto files = open(state);
  auto download = files->download(*layout(), whole(manifest_of(model), std::nullopt));
  REQUIRE(download);
  CHECK(!download->model->has(0));
  CHECK(download->model->has(1));
  write_chunk(*download->model, model, 0);
  write_chunk(*download->model, model, 2);
  auto vector = files->load(download->model, layout(), download->wanted);
  REQUIRE(vector);
  CHECK(std::ranges::equal(vector->values(), model));
}

TEST_CASE("cache: a model that was there before is there again, if little came between and there is room") {
  const TemporaryDirectory state;
  const auto first = numbers(1);
  const auto second = numbers(2);
  auto files = open(state, 3 * 12'000);
  for (const auto* model : {&first, &second}) {
    auto download = files->download(*layout(), whole(manifest_of(*model), std::nullopt));
    REQUIRE(download);
    for (std::size_t chunk = 0; chunk < 3; ++chunk) write_chunk(*download->model, *model, chunk);
  }
  CHECK(files->download(*layout(), whole(manifest_of(first), manifest_of(second)))->model->complete());
  for (float other = 3; other < 6; ++other)
    REQUIRE(files->download(*layout(), whole(manifest_of(numbers(other)), std::nullopt)));
  CHECK(!files->download(*layout(), whole(manifest_of(first), std::nullopt))->model->complete());
  CHECK(chunk_files(state).size() <= 3);
}

TEST_CASE("cache: a chunk damaged on the disk is found before training, and fetched again") {
  const TemporaryDirectory state;
  const auto model = numbers(1);
  auto files = open(state);
  {
    auto download = files->download(*layout(), whole(manifest_of(model), std::nullopt));
    for (std::size_t chunk = 0; chunk < 3; ++chunk) write_chunk(*download->model, model, chunk);
    REQUIRE(chunk_files(state).size() == 1);
    damage(chunk_files(state).front(), 4096 + 5000);  // chunk 1, after the file's header
    const auto vector = files->load(download->model, layout(), download->wanted);
    REQUIRE_FALSE(vector);
    CHECK(vector.error().code == ErrorCode::kCorrupt);
    CHECK_MESSAGE(vector.error().message.find((state.path() / "chunks").string()) != std::string::npos,
                  vector.error().message);
  }
  auto again = files->download(*layout(), whole(manifest_of(model), std::nullopt));
  REQUIRE(again);
  CHECK(again->model->has(0));
  CHECK(!again->model->has(1));
}

TEST_CASE("cache: a model larger than the cache is refused with what to do") {
  const TemporaryDirectory state;
  auto files = open(state, 20'000);
  CHECK(files->download(*layout(), whole(manifest_of(numbers(1)), std::nullopt)));
  const auto both = files->download(*layout(), whole(manifest_of(numbers(1)), manifest_of(numbers(2))));
  REQUIRE_FALSE(both);
  CHECK(both.error().code == ErrorCode::kResource);
  CHECK(both.error().message ==
        "the model takes 24000 bytes, but the cache of this client holds only 20000; start the client with a "
        "larger --cache-mb");
}

TEST_CASE("cache: a model of another layout, or a part of one, is not fetched") {
  const TemporaryDirectory state;
  auto files = open(state);
  auto other = manifest_of(numbers(1));
  other.layout = sha256("another");
  CHECK(!files->download(*layout(), whole(other, std::nullopt)));
  CHECK(!files->download(*layout(), whole(manifest_of(numbers(1)), other)));
  const auto values = numbers(1);
  const auto part = protocol::make_manifest(layout()->hash(), Coverage::of({{0, 2048}}),
                                            std::as_bytes(std::span(values)).first(8192), 4096);
  const auto refused = files->download(*layout(), whole(part, std::nullopt));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message == "the offered model does not match the run's model");
}

TEST_CASE("pending: an update that was kept is there in the next process, as it was offered") {
  const TemporaryDirectory state;
  const auto update = numbers(-5);
  const auto request = request_for(numbers(1));
  protocol::UpdateOffer offer;
  {
    auto files = open(state);
    auto kept = files->keep(request, result_of(update));
    REQUIRE_MESSAGE(kept, kept.error().message);
    offer = kept->pending.offer;
  }
  struct stat info {};
  REQUIRE(::stat(pending_in(state).c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
  auto files = open(state);
  auto taken = take_up(*files);
  CHECK(taken.said.empty());
  REQUIRE(taken.updates.size() == 1);
  const TaskFiles::Update& found = taken.updates.front();
  CHECK(found.pending.offer.update == offer.update);
  CHECK(found.pending.offer.samples == SampleCount(12));
  CHECK(found.pending.offer.loss_rms == 0.75);
  CHECK(found.pending.request.model == request.model);
  CHECK(found.pending.request.last_round == RoundNumber(2));
  std::vector<float> payload(3000);
  REQUIRE(found.payload->read_bytes(0, std::as_writable_bytes(std::span(payload))));
  CHECK(payload == update);
  files->forget(RunId(7));
  CHECK(!std::filesystem::exists(pending_in(state)));
  CHECK(take_up(*open(state)).updates.empty());
}

TEST_CASE("pending: a file cut or changed at any byte is named and dropped, and never offered") {
  const TemporaryDirectory state;
  const auto file = pending_in(state);
  REQUIRE(open(state)->keep(request_for(numbers(1)), result_of(numbers(2))));
  const auto whole = read_file(file, 1 << 20);
  REQUIRE(whole);
  const auto refused = [&](const std::string& text) {
    REQUIRE(write_file_atomic(file, text));
    const auto read = read_pending_update(file);
    return !read && read.error().message == file.string() + " is damaged";
  };
  std::size_t accepted = 0;
  for (std::size_t length = 0; length < whole->size(); ++length)
    if (!refused(whole->substr(0, length))) ++accepted;
  for (std::size_t i = 0; i < whole->size(); ++i) {
    std::string changed = *whole;
    changed[i] = static_cast<char>(changed[i] ^ 4);
    if (!refused(changed)) ++accepted;
  }
  CHECK(accepted == 0);
  const auto taken = take_up(*open(state));
  CHECK(taken.updates.empty());
  CHECK(taken.said == "update.dropped reason=\"" + file.string() + " is damaged\"");
  CHECK(!std::filesystem::exists(file));
}

TEST_CASE("pending: an update whose payload is damaged or gone is dropped, and that is said") {
  const TemporaryDirectory state;
  REQUIRE(open(state)->keep(request_for(numbers(1)), result_of(numbers(2))));
  REQUIRE(chunk_files(state).size() == 1);
  SUBCASE("a flipped bit") { damage(chunk_files(state).front(), 4096 + 11'999); }
  SUBCASE("cut short") { std::filesystem::resize_file(chunk_files(state).front(), 4096 + 5000); }
  SUBCASE("gone") { std::filesystem::remove_all(state.path() / "chunks"); }
  const auto taken = take_up(*open(state));
  CHECK(taken.updates.empty());
  CHECK(taken.said == "update.dropped reason=\"the payload of the pending update is incomplete in " +
                          (state.path() / "chunks").string() + "\"");
  CHECK(!std::filesystem::exists(pending_in(state)));
}

TEST_CASE("pending: the updates of two runs are both there in the next process, each with its own payload") {
  const TemporaryDirectory state;
  {
    auto files = open(state);
    REQUIRE(files->keep(request_for(numbers(1), RunId(UINT64_MAX)), result_of(numbers(5))));
    REQUIRE(files->keep(request_for(numbers(1), RunId(7)), result_of(numbers(6))));
    REQUIRE(files->keep(request_for(numbers(1), RunId(7)), result_of(numbers(7))));  // replaces the last one
  }
  auto files = open(state);
  const auto taken = take_up(*files);
  CHECK(taken.said.empty());
  REQUIRE(taken.updates.size() == 2);
  for (const auto& [index, run, first] : {std::tuple{0U, RunId(7), 7.0F}, {1U, RunId(UINT64_MAX), 5.0F}}) {
    CHECK(taken.updates[index].pending.request.run == run);
    std::vector<float> payload(3000);
    REQUIRE(taken.updates[index].payload->read_bytes(0, std::as_writable_bytes(std::span(payload))));
    CHECK(payload == numbers(first));
  }
  SUBCASE("one is forgotten") { files->forget(RunId(UINT64_MAX)); }
  SUBCASE("all are forgotten but those that are held") {
    files->forget_others(std::vector{RunId(7), RunId(8)});
  }
  const auto left = take_up(*open(state));
  REQUIRE(left.updates.size() == 1);
  CHECK(left.updates[0].pending.request.run == RunId(7));
}

TEST_CASE("pending: two runs with the same update forget it one by one") {
  const TemporaryDirectory state;
  auto files = open(state);
  REQUIRE(files->keep(request_for(numbers(1), RunId(7)), result_of(numbers(5))));
  REQUIRE(files->keep(request_for(numbers(1), RunId(8)), result_of(numbers(5))));
  files->forget(RunId(7));
  REQUIRE(files->keep(request_for(numbers(1), RunId(9)), result_of(numbers(6))));
  files.reset();
  const auto taken = take_up(*open(state));
  CHECK(taken.said.empty());
  REQUIRE(taken.updates.size() == 2);
  CHECK(taken.updates[0].pending.request.run == RunId(8));
  std::vector<float> payload(3000);
  REQUIRE(taken.updates[0].payload->read_bytes(0, std::as_writable_bytes(std::span(payload))));
  CHECK(payload == numbers(5));
}

TEST_CASE("pending: of several updates a damaged one is dropped alone") {
  const TemporaryDirectory state;
  for (const std::uint64_t run : {6U, 7U, 8U})
    REQUIRE(
        open(state)->keep(request_for(numbers(1), RunId(run)), result_of(numbers(static_cast<float>(run)))));
  const auto file = pending_in(state);
  SUBCASE("a flipped bit") { damage(file, 40); }
  SUBCASE("another run's file") {
    std::filesystem::copy_file(state.path() / "pending" / "0000000000000006", file,
                               std::filesystem::copy_options::overwrite_existing);
  }
  const auto taken = take_up(*open(state));
  CHECK(taken.said == "update.dropped reason=\"" + file.string() + " is damaged\"");
  REQUIRE(taken.updates.size() == 2);
  CHECK(taken.updates[0].pending.request.run == RunId(6));
  CHECK(taken.updates[1].pending.request.run == RunId(8));
  CHECK(!std::filesystem::exists(file));
}

TEST_CASE("pending: at most sixteen updates are taken up, and a file of an earlier version is removed") {
  const TemporaryDirectory state;
  REQUIRE(write_file_atomic(state.path() / "pending", "fedge pending update 1\n..."));
  auto old = take_up(*open(state));
  CHECK(old.updates.empty());
  CHECK(old.said == "update.dropped reason=\"" + (state.path() / "pending").string() +
                        " was written by an earlier version of this program\"");
  for (std::uint64_t run = 1; run <= 17; ++run)
    REQUIRE(open(state)->keep(request_for(numbers(1), RunId(run)), result_of(numbers(5))));
  const auto taken = take_up(*open(state));
  CHECK(taken.updates.size() == 16);
  const auto last = state.path() / "pending" / "0000000000000011";
  CHECK(taken.said == "update.dropped reason=\"" + last.string() +
                          " belongs to a run beyond the maximum number of runs of a client\"");
  CHECK(!std::filesystem::exists(last));
}

TEST_CASE("cache: what is held of a round stays until it is let go of, and takes its room") {
  const TemporaryDirectory state;
  auto files = open(state, 3 * 12'000);
  const auto first = files->hold(RunId(7), manifest_of(numbers(1)));
  REQUIRE(first);
  CHECK(*files->hold(RunId(7), manifest_of(numbers(1))) == *first);
  REQUIRE(files->hold(RunId(7), manifest_of(numbers(2))));
  REQUIRE(files->hold(RunId(8), manifest_of(numbers(3))));
  const auto fourth = files->hold(RunId(7), manifest_of(numbers(4)));
  REQUIRE_FALSE(fourth);
  CHECK(fourth.error().code == ErrorCode::kResource);
  CHECK(
      fourth.error().message.starts_with("the data that clients exchange in this round takes 12000 bytes in "
                                         "addition to 36000 bytes of updates"));
  files->let_go(RunId(7));
  CHECK(files->chunks().find(manifest_of(numbers(1)).id()) == nullptr);
  CHECK(files->chunks().find(manifest_of(numbers(3)).id()) != nullptr);
  CHECK(files->hold(RunId(9), manifest_of(numbers(4))));
}

TEST_CASE("cache: a model that is exchanged with other clients is not fetched again") {
  const TemporaryDirectory state;
  auto files = open(state, 3 * 12'000);
  const protocol::Manifest model = manifest_of(numbers(1));
  TaskFiles::Offer offer = whole(model, std::nullopt);
  const auto exchanged = files->download(*layout(), offer)->model;
  for (std::size_t chunk = 0; chunk < 3; ++chunk) write_chunk(*exchanged, numbers(1), chunk);
  REQUIRE(files->keep(request_for(numbers(1)), result_of(numbers(5))));  // releases the model
  CHECK(files->chunks().find(model.id()) == nullptr);
  offer.present = exchanged;
  CHECK(files->download(*layout(), offer)->model == exchanged);
  CHECK(*files->hold(RunId(7), model, exchanged) == exchanged);
  CHECK(files->load(exchanged, layout()));
  offer.model = manifest_of(numbers(2));  // another model is fetched
  CHECK_FALSE(files->download(*layout(), offer)->model->has(0));
  CHECK(*files->hold(RunId(7), offer.model, exchanged) != exchanged);
}

TEST_CASE("cache: an update of this client's own is not lost with the round's") {
  const TemporaryDirectory state;
  auto files = open(state, 3 * 12'000);
  const auto kept = files->keep(request_for(numbers(1), RunId(7)), result_of(numbers(5)));
  REQUIRE(kept);
  REQUIRE(files->hold(RunId(7), kept->payload->manifest()));
  files->let_go(RunId(7));
  files.reset();
  CHECK(take_up(*open(state, 3 * 12'000)).updates.size() == 1);
}

TEST_CASE("cache: what waits for a verdict stays, and what does not fit beside it is refused") {
  const TemporaryDirectory state;
  auto files = open(state, 3 * 12'000);
  REQUIRE(files->keep(request_for(numbers(1), RunId(7)), result_of(numbers(5))));
  REQUIRE(files->keep(request_for(numbers(1), RunId(8)), result_of(numbers(6))));
  const auto both = files->download(*layout(), whole(manifest_of(numbers(1)), manifest_of(numbers(2))));
  REQUIRE_FALSE(both);
  CHECK(both.error().code == ErrorCode::kResource);
  CHECK(both.error().message ==
        "the model takes 24000 bytes in addition to 24000 bytes of updates in rounds that have not ended, "
        "but the cache of this client holds only 36000; start the client with a larger --cache-mb");
  CHECK(files->download(*layout(), whole(manifest_of(numbers(1)), std::nullopt)));
  REQUIRE(files->keep(request_for(numbers(1), RunId(9)), result_of(numbers(7))));
  const auto fourth = files->keep(request_for(numbers(1), RunId(10)), result_of(numbers(8)));
  REQUIRE_FALSE(fourth);
  CHECK(fourth.error().message.starts_with(
      "the update takes 12000 bytes in addition to 36000 bytes of updates"));
  files.reset();
  CHECK(take_up(*open(state, 3 * 12'000)).updates.size() == 3);
}

TEST_CASE("memory: that of a run that is over is removed, the others' is left") {
  const TemporaryDirectory state;
  for (const std::uint64_t run : {1U, 2U, 3U}) {
    FileMemory memory(memory_of(state.path(), RunId(run)), TrackId(4));
    REQUIRE(memory.save({.round = RoundNumber(3), .control = {}, .residual = {1, 2, 3}}));
  }
  const auto kept = [&](std::uint64_t run) {
    return std::filesystem::exists(state.path() / "runs" / std::to_string(run) / "track-4" / "task-3");
  };
  REQUIRE((kept(1) && kept(2) && kept(3)));
  forget_run(state.path(), RunId(2));
  CHECK((kept(1) && !kept(2) && kept(3)));
  forget_other_runs(state.path(), std::vector{RunId(3), RunId(9)});
  CHECK((!kept(1) && kept(3)));
  forget_other_runs(state.path(), {});
  CHECK(!kept(3));
}

TEST_CASE("memory: a damaged one is named once and gone, so that it does not fail every task after it") {
  const TemporaryDirectory state;
  FileMemory memory(state.path());
  REQUIRE(memory.save({.round = RoundNumber(3), .control = {}, .residual = {1, 2, 3}}));
  damage(state.path() / "task-3", 45);
  const auto first = memory.load(RoundNumber(3));
  REQUIRE_FALSE(first);
  CHECK(first.error().message == (state.path() / "task-3").string() + " is damaged; it has been removed");
  const auto second = memory.load(RoundNumber(3));
  REQUIRE(second);
  CHECK(!*second);
}

TEST_CASE("membership: a client number that no client can have is damage, not another client") {
  const TemporaryDirectory state;
  const std::string key(64, '0');
  REQUIRE(write_file_atomic(
      state.path() / "membership.json",
      "{\"client\": 4294967297, \"coordinator_key\": \"" + key + "\", \"coordinators\": [\"127.0.0.1:1\"]}"));
  const auto read = read_membership(state.path());
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::kCorrupt);
}

TEST_CASE(
    "cache: of a model that is frozen but for its end, only the chunks that have changed are fetched again") {
  const TemporaryDirectory state;
  const auto files = open(state);
  const std::vector<float> first = numbers(1);
  std::vector<float> second = first;
  second.back() += 1;
  const auto offer = [&](const std::vector<float>& model) {
    TaskFiles::Offer made = whole(manifest_of(model), std::nullopt);
    made.frozen = true;
    return made;
  };
  auto download = files->download(*layout(), offer(first));
  REQUIRE(download);
  const std::size_t chunks = download->model->manifest().chunk_count();
  REQUIRE(chunks > 1);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) write_chunk(*download->model, first, chunk);
  download->model.reset();
  REQUIRE(files->keep(request_for(first), result_of(first)));
  const auto next = files->download(*layout(), offer(second));
  REQUIRE(next);
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) CHECK(next->model->has(chunk) == (chunk + 1 < chunks));
}

TEST_CASE("cache: a control in smaller chunks than its model's is read whole") {
  const TemporaryDirectory state;
  const auto files = open(state);
  const std::vector<float> model = numbers(1), control = numbers(2);
  const protocol::Manifest large = protocol::make_manifest(layout()->hash(), Coverage::all(model.size()),
                                                           std::as_bytes(std::span(model)), 16384);
  const auto download = files->download(*layout(), whole(large, manifest_of(control)));
  REQUIRE(download);
  REQUIRE(download->wanted.size() == 1);
  for (std::size_t chunk = 0; chunk < 3; ++chunk) write_chunk(*download->control, control, chunk);
  const auto read = files->load(download->control, layout());
  REQUIRE(read);
  CHECK(std::ranges::equal(read->values(), control));
}

TEST_CASE("cache: what was fetched of a frozen model for a task that was given up is not fetched again") {
  const TemporaryDirectory state;
  const auto files = open(state);
  const std::vector<float> first = numbers(1);
  std::vector<float> second = first;
  second.back() += 1;
  const auto download = [&](const std::vector<float>& model, bool frozen) {
    TaskFiles::Offer offer = whole(manifest_of(model), std::nullopt);
    offer.frozen = frozen;
    auto made = files->download(*layout(), offer);
    REQUIRE(made);
    return *made;
  };
  write_chunk(*download(first, true).model, first, 0);
  const auto next = download(second, true);
  CHECK(next.model->has(0));
  CHECK_FALSE(next.model->has(1));
  // A model that is not announced as frozen leaves no chunks in the cache.
  write_chunk(*download(first, false).model, first, 1);
  CHECK_FALSE(download(second, true).model->has(1));
}

TEST_CASE("cache: a frozen model gives way to a larger one") {
  const TemporaryDirectory state;
  const auto files = open(state, 40'000);  // space for three models of 12,000 bytes and a little more
  const std::vector<float> first = numbers(1);
  TaskFiles::Offer offer = whole(manifest_of(first), std::nullopt);
  offer.frozen = true;
  {
    auto download = files->download(*layout(), offer);
    REQUIRE(download);
    for (std::size_t chunk = 0; chunk < 3; ++chunk) write_chunk(*download->model, first, chunk);
  }
  REQUIRE(files->keep(request_for(first), result_of(first)));
  files->forget(RunId(7));
  const auto large = std::make_shared<ParameterLayout>();
  large->add("all", {9000});
  const std::vector<float> many(9000, 0.5F);
  const protocol::Manifest manifest = protocol::make_manifest(large->hash(), Coverage::all(many.size()),
                                                              std::as_bytes(std::span(many)), 4096);
  const auto second = files->download(*large, whole(manifest, std::nullopt));
  REQUIRE_MESSAGE(second, second.error().message);
  for (std::size_t chunk = 0; chunk < manifest.chunk_count(); ++chunk)
    write_chunk(*second->model, many, chunk);
}

TEST_CASE("cache: where updates wait for a verdict, a frozen model is kept only as long as there is room") {
  const TemporaryDirectory state;
  const std::vector<float> first = numbers(1);
  std::vector<float> second = first;
  second.back() += 1;
  const auto kept_with = [&](std::size_t cache) {
    const auto files = open(state, cache);
    const auto fetch = [&](const std::vector<float>& model) {
      TaskFiles::Offer offer = whole(manifest_of(model), std::nullopt);
      offer.frozen = true;
      auto download = files->download(*layout(), offer);
      REQUIRE_MESSAGE(download, download.error().message);
      return *download;
    };
    const auto keep = [&](RunId run) {
      const auto kept =
          files->keep(request_for(first, run), result_of(numbers(static_cast<float>(run.value()))));
      REQUIRE_MESSAGE(kept, kept.error().message);
    };
    for (const RunId run : {RunId(8), RunId(9)}) keep(run);
    for (std::size_t chunk = 0; chunk < 3; ++chunk) write_chunk(*fetch(first).model, first, chunk);
    const bool kept = fetch(second).model->has(0);
    keep(RunId(10));
    for (const RunId run : {RunId(8), RunId(9), RunId(10)}) files->forget(run);
    return kept;
  };
  CHECK(kept_with(60'000));
  CHECK_FALSE(kept_with(40'000));  // space for two updates and one of the models only
}

TEST_CASE("cache: chunks that hold nothing that is needed are not fetched, and their values are zero") {
  const TemporaryDirectory state;
  const auto files = open(state);
  const std::vector<float> model = numbers(1);
  TaskFiles::Offer offer = whole(manifest_of(model), std::nullopt);
  offer.needed = Coverage::of({{5, 7}});
  const auto download = files->download(*layout(), offer);
  REQUIRE(download);
  const protocol::SelectedChunks sink(download->model, download->wanted);
  CHECK_FALSE(sink.has(0));
  for (std::size_t chunk = 1; chunk < download->wanted.size(); ++chunk) CHECK(sink.has(chunk));
  write_chunk(*download->model, model, 0);
  CHECK(sink.has(0));
  const auto vector = files->load(download->model, layout(), download->wanted);
  REQUIRE(vector);
  for (std::size_t i = 0; i < model.size(); ++i) CHECK(vector->values()[i] == (i < 1024 ? model[i] : 0.0F));
}

}  // namespace fedge::client
