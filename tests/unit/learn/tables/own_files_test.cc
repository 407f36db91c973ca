// Data that every client has for itself, and how a file's samples are split.
#include "learn/data/files/own_data.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "learn/data/data_directories.h"
#include "learn/data/files/split.h"
#include "learn/task.h"
#include "tests/support/text.h"
#include "tests/unit/learn/tables/files.h"

namespace fedge::learn {
namespace {

using fedge::test::contains;
using test::data_spec;
using test::TemporaryDirectory;
using test::write_text;

const std::string kOwnKeys =
    "dataset = \"csv\"\nname = \"vitals\"\nnumeric = [\"x\"]\ntarget = \"y\"\nclasses = [\"0\", \"1\"]\n";

// A table whose rows have x = first, first + 1, ... and y = x modulo 2.
std::string parity_table(int first, int rows) {
  std::string text = "x,y\n";
  for (int i = first; i < first + rows; ++i) text += std::to_string(i) + "," + std::to_string(i % 2) + "\n";
  return text;
}

DataSpec own_spec(const std::filesystem::path& path, std::size_t clients, const std::string& more = "") {
  auto spec = data_spec(kOwnKeys + "partition = { kind = \"own\", clients = " + std::to_string(clients) +
                        " }\n" + more);
  REQUIRE_MESSAGE(spec, spec.error().message);
  spec->directory = path.string();
  return *spec;
}

std::vector<int> values(const Dataset& data) {
  std::vector<int> all;
  for (const float value : data.floats.span()) all.push_back(static_cast<int>(value));
  return all;
}

std::vector<int> values_of(const OwnedSamples& samples, std::size_t client) {
  std::vector<int> own;
  for (const std::uint32_t sample : samples.partition.of(client))
    own.push_back(static_cast<int>(samples.data.floats.span()[sample]));
  return own;
}

std::string owned_error(const Result<OwnedSamples>& samples) {
  return samples ? std::string("no error") : samples.error().message;
}

}  // namespace

TEST_CASE("own data: a simulation's clients have what a device with the same file has") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "all" / "b.csv", parity_table(100, 30));
  write_text(directory.path() / "all" / "a.csv", parity_table(0, 20));
  write_text(directory.path() / "all" / "c" / "1.csv", parity_table(200, 5));
  write_text(directory.path() / "all" / "c" / "2.csv", parity_table(300, 5));
  write_text(directory.path() / "all" / "c" / "notes.txt", "not a table");
  write_text(directory.path() / "all" / ".hidden.csv", "not a table");
  std::string more;
  SUBCASE("test samples only") {}
  SUBCASE("and validation samples") { more = "validation = 0.2\n"; }
  const DataSpec spec = own_spec(directory.path() / "all", 3, more);
  for (const Purpose purpose : {Purpose::kTraining, Purpose::kEvaluation}) {
    const auto all = load_all_own(spec, purpose, Rng(5));
    REQUIRE_MESSAGE(all, all.error().message);
    REQUIRE(all->partition.clients() == 3);
    const std::vector<std::string> names = {"a.csv", "b.csv", "c"};
    for (std::size_t client = 0; client < 3; ++client) {
      DataSpec device = spec;
      device.directory += "/" + names[client];
      const auto own = load_own(device, purpose, client, Rng(5));
      REQUIRE_MESSAGE(own, own.error().message);
      CHECK(values(*own) == values_of(*all, client));
      CHECK(own->size() > 0);
    }
  }
  // Training and evaluation have no sample in common.
  const auto training = values((*load_all_own(spec, Purpose::kTraining, Rng(5))).data);
  for (const int value : values((*load_all_own(spec, Purpose::kEvaluation, Rng(5))).data))
    CHECK(std::ranges::find(training, value) == training.end());
  // A fifth is for testing; of the rest a fifth, of each label, for validation.
  CHECK(training.size() == (more.empty() ? 48 : 38));
}

TEST_CASE("own data: a device's task trains on its file, like the client of the simulation") {
  const TemporaryDirectory directory;
  for (int c = 0; c < 3; ++c)
    write_text(directory.path() / ("site" + std::to_string(c) + ".csv"), parity_table(10 * c, 10 + 5 * c));
  TaskSpec spec;
  spec.data = own_spec(directory.path(), 3);
  spec.model.hidden = {4};
  const auto whole = Task::build(spec, 9);
  REQUIRE_MESSAGE(whole, whole.error().message);
  spec.data.directory = (directory.path() / "site1.csv").string();
  const auto device = Task::build_for(spec, 9, ClientId(1));
  REQUIRE_MESSAGE(device, device.error().message);
  const std::vector<float> model((*whole)->model().layout()->size(), 0.01F);
  std::vector<float> one(model.size()), other(model.size());
  Trainer first = (*whole)->make_trainer();
  Trainer second = (*device)->make_trainer();
  const Assignment work{.client = ClientId(1), .round = RoundNumber(3)};
  REQUIRE((*whole)->train(work, model, one, first));
  REQUIRE((*device)->train(work, model, other, second));
  CHECK(one == other);
  CHECK(one != std::vector<float>(model.size(), 0.0F));
  CHECK((*whole)->samples_of(ClientId(1)).size() == (*device)->samples_of(ClientId(1)).size());
}

TEST_CASE("own data: the number of clients must be that of the files") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "a.csv", parity_table(0, 4));
  CHECK(owned_error(load_all_own(own_spec(directory.path(), 2), Purpose::kTraining, Rng(1))) ==
        "data.partition.clients: is 2, but " + directory.path().string() +
            " has the data of 1 clients; set it to 1");
  CHECK(
      contains(owned_error(load_all_own(own_spec("", 2), Purpose::kTraining, Rng(1))), "--data vitals=DIR"));
  CHECK(contains(owned_error(load_all_own(own_spec("/nowhere", 2), Purpose::kTraining, Rng(1))), "/nowhere"));
  write_text(directory.path() / "b.csv", "x,y\n");
  CHECK(owned_error(load_all_own(own_spec(directory.path(), 2), Purpose::kTraining, Rng(1))) ==
        directory.path().string() + "/b.csv: there are no samples");
  write_text(directory.path() / "b.csv", "x,y\n1,2\n");
  CHECK(contains(owned_error(load_all_own(own_spec(directory.path(), 2), Purpose::kTraining, Rng(1))),
                 "b.csv:2: column \"y\": \"2\" is not one of data.classes"));
}

TEST_CASE("own data: clients.csv says who has which samples, for what") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "data.csv", parity_table(0, 8));
  const auto index = [&](const std::string& rows) {
    write_text(directory.path() / "clients.csv", "sample_id,client_id,split\n" + rows);
  };
  index("0,10,train\n1,9,train\n2,10,test\n3,9,train\n6,10,train\n7,9,test\n");
  const DataSpec spec = own_spec(directory.path(), 2);
  const auto training = load_all_own(spec, Purpose::kTraining, Rng(1));
  const auto evaluation = load_all_own(spec, Purpose::kEvaluation, Rng(1));
  REQUIRE_MESSAGE(training, training.error().message);
  REQUIRE(evaluation);
  // Ids are numbers, so 9 comes before 10.
  CHECK(values_of(*training, 0) == std::vector<int>{1, 3});
  CHECK(values_of(*training, 1) == std::vector<int>{0, 6});
  CHECK(values_of(*evaluation, 0) == std::vector<int>{7});
  CHECK(values_of(*evaluation, 1) == std::vector<int>{2});
  CHECK((*load_train(spec, Rng(1)))->size() == 4);
  CHECK((*load_evaluation(spec, Rng(1)))->size() == 2);

  index("0,a10,train\n1,a9,train\n2,a9,validation\n3,a9,test\n");
  const auto named = load_all_own(spec, Purpose::kTraining, Rng(1));
  REQUIRE(named);
  CHECK(values_of(*named, 0) == std::vector<int>{0});
  // Validation samples replace the test samples.
  CHECK(values_of(*load_all_own(spec, Purpose::kEvaluation, Rng(1)), 1) == std::vector<int>{2});

  const auto error = [&] { return owned_error(load_all_own(spec, Purpose::kTraining, Rng(1))); };
  index("8,a,train\n");
  CHECK(contains(error(), "clients.csv:2: there is no sample \"8\"; the data has the samples 0 to 7"));
  index("1,a,train\n1,b,train\n");
  CHECK(contains(error(), "clients.csv:3: sample 1 is listed twice"));
  index("1,a,learn\n");
  CHECK(contains(error(), "clients.csv:2: \"learn\" is not a split, expected train, validation or test"));
  index("1,a\n");
  CHECK(contains(error(), "clients.csv:2: the row has 2 fields, expected 3"));
  write_text(directory.path() / "clients.csv", "sample,client,split\n");
  CHECK(contains(error(), "the first line must be \"sample_id,client_id,split\""));
  index("1,a,train\n");
  CHECK(contains(error(), "data.partition.clients: is 2, but"));
  CHECK(contains(owned_error(load_all_own(own_spec(directory.path(), 1, "validation = 0.1\n"),
                                          Purpose::kTraining, Rng(1))),
                 "data.validation: clients.csv says which samples are for validation"));
}

TEST_CASE("split: by share of each label, by time or by file, and never by the run's seed") {
  const TemporaryDirectory directory;
  write_text(directory.path() / "t.csv", parity_table(0, 40));
  const auto loaded = [&](const std::string& split, Split which, const std::string& path = "t.csv") {
    auto spec = data_spec(kOwnKeys + "split = " + split + "\n");
    REQUIRE_MESSAGE(spec, spec.error().message);
    spec->directory = (directory.path() / path).string();
    auto data = which == Split::kTest ? load_test(*spec) : load_train(*spec, Rng(3));
    REQUIRE_MESSAGE(data, data.error().message);
    return values(**data);
  };
  const std::vector<int> shared = loaded("{ test = 0.25 }", Split::kTest);
  CHECK(shared.size() == 10);
  CHECK(std::ranges::count_if(shared, [](int x) { return x % 2 == 0; }) == 5);
  CHECK(std::ranges::is_sorted(shared));
  std::vector<int> all = loaded("{ test = 0.25 }", Split::kTrain);
  all.insert(all.end(), shared.begin(), shared.end());
  CHECK(std::set<int>(all.begin(), all.end()).size() == 40);
  CHECK(loaded("{ test = 0.25, seed = 1 }", Split::kTest) != shared);
  CHECK(loaded("{ kind = \"time\", test = 0.1 }", Split::kTest) == std::vector<int>{36, 37, 38, 39});
  CHECK(loaded("{ kind = \"time\", test = 0.1 }", Split::kTrain).back() == 35);
  CHECK(loaded("{ test = 0 }", Split::kTrain).size() == 40);
  write_text(directory.path() / "d" / "train-1.csv", parity_table(0, 3));
  write_text(directory.path() / "d" / "train-2.csv", parity_table(10, 2));
  write_text(directory.path() / "d" / "test.csv", parity_table(20, 1));
  CHECK(loaded("{ kind = \"file\" }", Split::kTrain, "d") == std::vector<int>{0, 1, 2, 10, 11});
  CHECK(loaded("{ kind = \"file\" }", Split::kTest, "d") == std::vector<int>{20});
  auto spec = data_spec(kOwnKeys + "split = { kind = \"file\" }\n");
  REQUIRE(spec);
  spec->directory = (directory.path() / "t.csv").string();
  CHECK(
      contains(load_test(*spec).error().message, "has no file whose name begins with \"train\" or \"test\""));
}

TEST_CASE("partition: with a seed of its own, another seed of the run gives the same parts") {
  const std::vector<Label> labels(50, 0);
  PartitionSpec spec{.kind = PartitionKind::kIid, .clients = 5};
  const auto part = [&](std::uint64_t run) {
    const auto parts = partition(spec, labels, 1, Rng(run));
    REQUIRE(parts);
    return std::vector<std::uint32_t>(parts->of(2).begin(), parts->of(2).end());
  };
  CHECK(part(1) != part(2));
  spec.seed = 1;
  CHECK(part(2) == part(3));
  spec.seed.reset();
  const auto of_one = part(1);
  spec.seed = 1;
  CHECK(part(7) == of_one);  // as if it were the seed of the run
  spec.kind = PartitionKind::kOwn;
  CHECK(contains(partition(spec, labels, 1, Rng(1)).error().message, "every client has its own data"));
}

TEST_CASE("own data: a device uses only a path that its owner gave for the name of the run's data") {
  const TemporaryDirectory directory;
  const std::string path = directory.path().string();
  DataSpec spec = own_spec("/etc/of/the/coordinator", 2);
  const auto chosen = [&](const DataDirectories& paths) {
    DataSpec data = spec;
    const auto done = choose_directory(paths, data);
    return done ? data.directory : done.error().message;
  };
  CHECK(chosen({{"vitals", path}}) == path);
  CHECK(chosen({{"vitals", path}, {"", "/other"}}) == path);
  for (const DataDirectories& paths : {DataDirectories{}, {{"csv", path}}, {{"", path}}, {{"vital", path}}})
    CHECK(chosen(paths) ==
          "the run trains on data that this device knows as \"vitals\", but no path was given for it; start "
          "the "
          "client with --data vitals=PATH");
  // Also a public data set, if every client is to have its own.
  spec.dataset = "fashion-mnist";
  spec.name.clear();
  CHECK(
      chosen({{"", path}}).starts_with("the run trains on data that this device knows as \"fashion-mnist\""));
}

}  // namespace fedge::learn
