// Frozen matrices in a directory that client processes share (run --share-base).
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/platform/files.h"
#include "tests/unit/client/files/base_fixture.h"

namespace fedge::client::base {
namespace {

using Loaded = std::shared_ptr<const LoadedModel>;

std::vector<std::filesystem::path> files_in(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().filename() != "fedge-bases.lock") found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

Loaded load(const Files& client, BaseDtype dtype, const std::filesystem::path& shared) {
  auto loaded = load_model(layout_of_bases(), {dtype, shared}, *client.files, client.download);
  REQUIRE_MESSAGE(loaded, loaded.error().message);
  return *loaded;
}

// Whether this is the model, in a base and beside it.
bool holds_model(const LoadedModel& loaded, const std::vector<float>& model) {
  const auto layout = layout_of_bases();
  return std::ranges::all_of(layout->tensors(), [&](const TensorInfo& tensor) {
    const auto expected = std::span(model).subspan(tensor.offset, tensor.size);
    if (!loaded.base || !CompactWeights::holds(tensor))
      return equal_bits(loaded.model.tensor(tensor), expected);
    std::vector<float> values(tensor.size);
    loaded.base->expand({tensor.offset, tensor.offset + tensor.size}, values.data());
    return equal_bits(values, expected);
  });
}

std::vector<float> with_other(std::vector<float> model, const char* tensor) {
  model[layout_of_bases()->find(tensor)->offset] += 1;
  return model;
}

void spoil(const std::filesystem::path& file, std::streamoff at, const std::string& bytes) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(at);
  stream << bytes;
}

// Lines of /proc/self/maps that name the file.
std::vector<std::string> mappings_of(const std::filesystem::path& file) {
  std::vector<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.ends_with(" " + file.string())) found.push_back(line);
  return found;
}

}  // namespace

TEST_CASE("shared base: clients have the matrices in one file, which none of them can change") {
  for (const BaseDtype dtype : {BaseDtype::kFloat32, BaseDtype::kBfloat16, BaseDtype::kInt8}) {
    CAPTURE(dtype);
    const TemporaryDirectory shared;
    const std::vector<float> model = base_of(dtype);
    const Files one(model), two(model);
    const Loaded first = load(one, dtype, shared.path());
    const Loaded second = load(two, dtype, shared.path());
    for (const Loaded& loaded : {first, second}) {
      CHECK_FALSE(loaded->unshared);
      CHECK(loaded->base);
      CHECK(holds_model(*loaded, model));
    }
    const auto files = files_in(shared.path());
    REQUIRE(files.size() == 1);
    const auto mappings = mappings_of(files.front());
    CHECK(mappings.size() == 2);
    for (const std::string& mapping : mappings)
      CHECK_MESSAGE(mapping.find(" r--s ") != std::string::npos, mapping);
  }
}

TEST_CASE("shared base: new adapters leave the file, another base or type has another") {
  const TemporaryDirectory shared;
  const std::vector<float> model = base_of(BaseDtype::kInt8);
  const Files client(model), next(with_other(model, "adapters")), other(base_of(BaseDtype::kInt8, 6));
  const Loaded first = load(client, BaseDtype::kInt8, shared.path());
  CHECK(holds_model(*load(next, BaseDtype::kInt8, shared.path()), with_other(model, "adapters")));
  CHECK(files_in(shared.path()).size() == 1);
  CHECK(holds_model(*load(other, BaseDtype::kInt8, shared.path()), base_of(BaseDtype::kInt8, 6)));
  CHECK(files_in(shared.path()).size() == 2);
  CHECK(holds_model(*load(client, BaseDtype::kFloat32, shared.path()), model));
  CHECK(files_in(shared.path()).size() == 3);
  CHECK(holds_model(*first, model));
}

TEST_CASE("shared base: a file with other values is replaced, and nobody computes with them") {
  const std::vector<float> model = base_of(BaseDtype::kFloat32);
  const Files client(model), another(model);
  SUBCASE("changed on the disk") {
    const TemporaryDirectory shared;
    (void)load(client, BaseDtype::kFloat32, shared.path());
    const auto file = files_in(shared.path()).front();
    spoil(file, 4 * 5000, "\x7f");
    CHECK(holds_model(*load(another, BaseDtype::kFloat32, shared.path()), model));
    CHECK(files_in(shared.path()) == std::vector{file});
    CHECK(holds_model(*load(client, BaseDtype::kFloat32, shared.path()), model));
  }
  SUBCASE("cut off") {
    const TemporaryDirectory shared;
    (void)load(client, BaseDtype::kFloat32, shared.path());
    std::filesystem::resize_file(files_in(shared.path()).front(), 100);
    CHECK(holds_model(*load(another, BaseDtype::kFloat32, shared.path()), model));
  }
  SUBCASE("from a model that differs where its chunks also have adapters") {
    const TemporaryDirectory shared;
    auto liar = model;
    liar[layout_of_bases()->find("adapters")->offset - 1] += 1;  // the last value of "second"
    const Files false_client(liar);
    const Loaded theirs = load(false_client, BaseDtype::kFloat32, shared.path());
    const Loaded ours = load(client, BaseDtype::kFloat32, shared.path());
    CHECK(files_in(shared.path()).size() == 1);
    CHECK(holds_model(*ours, model));
    CHECK(holds_model(*theirs, liar));
  }
}

TEST_CASE("shared base: without the directory, a client keeps the matrices itself and says why") {
  const std::vector<float> model = base_of(BaseDtype::kInt8);
  const Files client(model);
  const TemporaryDirectory home;
  for (const BaseDtype dtype : {BaseDtype::kFloat32, BaseDtype::kInt8}) {
    const Loaded loaded = load(client, dtype, home.path() / "gone");
    CHECK(holds_model(*loaded, model));
    REQUIRE(loaded->unshared);
    CHECK(loaded->unshared->message.find((home.path() / "gone").string()) != std::string::npos);
  }
}

TEST_CASE("shared base: errors of the client's own model stay errors, whatever the file has") {
  const TemporaryDirectory shared;
  const std::vector<float> exact = base_of(BaseDtype::kFloat32);
  const Files client(exact);
  const auto load_as = [&](BaseDtype dtype) {
    return load_model(layout_of_bases(), {dtype, shared.path()}, *client.files, client.download);
  };
  const auto wrong = load_as(BaseDtype::kInt8);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ErrorCode::kInvalid);
  CHECK(files_in(shared.path()).empty());
  REQUIRE(load_as(BaseDtype::kFloat32));
  const auto files = files_in(shared.path());
  for (const auto& entry : std::filesystem::directory_iterator(chunk_cache(client.state.path())))
    spoil(entry.path(), 4096 + 2 * kChunk, "\x7f");  // in chunk 2, after the file's header
  const auto damaged = load_as(BaseDtype::kFloat32);
  REQUIRE_FALSE(damaged);
  CHECK(damaged.error().code == ErrorCode::kCorrupt);
  CHECK(files_in(shared.path()) == files);
}

TEST_CASE("shared base: a client waits while another writes, no longer than its task, and takes its file") {
  const TemporaryDirectory shared;
  const std::vector<float> model = base_of(BaseDtype::kInt8);
  const Files waiting(model), client(model);
  const auto lock = shared.path() / "fedge-bases.lock";
  std::stop_source stop;
  Loaded loaded;
  std::optional<FileLock> writing;
  writing.emplace(lock);
  REQUIRE(writing->held());
  // A client removes this after it has found no file, and before it waits.
  shared.write("fedge-left.unpublished", {'x'});
  std::thread thread([&] {
    const auto done = load_model(layout_of_bases(), {BaseDtype::kInt8, shared.path()}, *waiting.files,
                                 waiting.download, stop.get_token());
    if (done) loaded = *done;
  });
  while (std::filesystem::exists(shared.path() / "fedge-left.unpublished")) std::this_thread::yield();
  SUBCASE("until it has written") {
    // As the other client: the file has its name before the lock is released.
    const TemporaryDirectory elsewhere;
    (void)load(client, BaseDtype::kInt8, elsewhere.path());
    const auto file = files_in(elsewhere.path()).front();
    const auto published = shared.path() / file.filename();
    std::filesystem::copy_file(file, shared.path() / "copy");
    std::filesystem::rename(shared.path() / "copy", published);
    const auto before = identity_of(published);
    writing.reset();
    thread.join();
    REQUIRE(loaded);
    CHECK_FALSE(loaded->unshared);
    const auto after = identity_of(published);
    REQUIRE((before && after));
    CHECK(*after == *before);
  }
  SUBCASE("until its task is abandoned") {
    stop.request_stop();
    thread.join();
    REQUIRE(loaded);
    REQUIRE(loaded->unshared);
    CHECK(loaded->unshared->message.starts_with("cannot lock " + lock.string()));
    CHECK(files_in(shared.path()).empty());
  }
  CHECK(holds_model(*loaded, model));
}

TEST_CASE("shared base: of files that nobody has open, the four that were opened last stay") {
  const TemporaryDirectory shared;
  shared.write("notes.txt", {'m', 'i', 'n', 'e'});
  const Files held(base_of(BaseDtype::kInt8, 100));
  const Loaded open = load(held, BaseDtype::kInt8, shared.path());
  std::vector<std::filesystem::path> known = files_in(shared.path());
  std::vector<std::filesystem::path> unopened;
  const auto now = std::filesystem::file_time_type::clock::now();
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    (void)load(Files(base_of(BaseDtype::kInt8, seed)), BaseDtype::kInt8, shared.path());
    for (const auto& file : files_in(shared.path()))
      if (std::ranges::find(known, file) == known.end()) unopened.push_back(file);
    REQUIRE(unopened.size() == seed);
    known.push_back(unopened.back());
    std::filesystem::last_write_time(unopened.back(), now - std::chrono::hours(10 - seed));
  }
  (void)load(held, BaseDtype::kInt8, shared.path());
  for (std::size_t i = 0; i < 6; ++i) CHECK(std::filesystem::exists(unopened[i]) == (i >= 2));
  CHECK(files_in(shared.path()).size() == 4 + 2);  // with notes.txt and the open file
}

TEST_CASE(
    "shared base: a directory that others can write to is refused, an absent one is made for its user") {
  const TemporaryDirectory home;
  const auto directory = home.path() / "a" / "bases";
  REQUIRE(prepare_shared_bases(directory));
  CHECK(std::filesystem::status(directory).permissions() == std::filesystem::perms::owner_all);
  CHECK(prepare_shared_bases(directory));
  for (const auto writer : {std::filesystem::perms::group_write, std::filesystem::perms::others_write}) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all | writer);
    const auto refused = prepare_shared_bases(directory);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kRefused);
    CHECK(refused.error().message.ends_with("run: chmod go-w " + directory.string()));
  }
  REQUIRE(write_file_atomic(home.path() / "file", "x"));
  CHECK_FALSE(prepare_shared_bases(home.path() / "file"));
}

TEST_CASE("shared base: a device trains and evaluates as one that keeps the whole model itself") {
  const TemporaryDirectory shared;
  for (const std::string name : {"float32", "bfloat16", "int8"}) {
    CAPTURE(name);
    const TextDevice alone(name);
    const TextDevice sharing(name, shared.path());
    const learn::Model& model = sharing.run->task->model();
    std::vector<float> values(model.layout()->size());
    model.initialise(values, Rng(1));
    learn::round_base(*model.layout(), sharing.run->base.dtype, values);
    const Files client(*model.layout(), values, Coverage::all(values.size()));
    const auto whole = load_model(model.layout(), alone.run->base, *client.files, client.download);
    const auto apart = load_model(model.layout(), sharing.run->base, *client.files, client.download);
    REQUIRE((whole && apart));
    CHECK_FALSE((*apart)->unshared);
    CHECK((*apart)->base);
    const WorkResult expected = alone.work(TaskKind::kTraining, **whole);
    CHECK(expected.norm > 0);
    CHECK(equal_bits(sharing.work(TaskKind::kTraining, **apart).values.span(), expected.values.span()));
    CHECK(sharing.work(TaskKind::kEvaluation, **apart).sums ==
          alone.work(TaskKind::kEvaluation, **whole).sums);
  }
  CHECK(files_in(shared.path()).size() == 3);
}

}  // namespace fedge::client::base
