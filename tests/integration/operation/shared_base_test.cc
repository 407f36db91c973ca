// Devices of one machine that keep the frozen weights of a language model in one directory.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "tests/integration/federation.h"

using namespace fedge;
using test::Federation;

namespace {

// Texts of two authors.
struct Authors {
  Authors() {
    const std::vector<std::string> words = {"the ", "sea ", "rolls ", "grey ", "and ", "cold "};
    for (std::size_t author = 0; author < 2; ++author) {
      std::string text;
      for (std::size_t i = 0; text.size() < 24'000; ++i) text += words[(i * i + i / 7 + author) % 6];
      texts.write("author" + std::to_string(author) + ".txt", {text.begin(), text.end()});
    }
  }
  learn::test::TemporaryDirectory texts;
};

// Each of two clients has the text of an author. They fine-tune a small model in two rounds.
struct Tuning : Authors {
  explicit Tuning(const std::string& dtype = "float32")
      : federation(2, {"data.dataset=text", "data.directory=" + texts.path().string(),
                       "data.partition.kind=natural", "data.context=16", "model.kind=llama", "model.layers=1",
                       "model.width=16", "model.heads=2", "model.adapter.rank=2", "model.base_dtype=" + dtype,
                       "run.chunk_size=4096", "training.batch_size=4", "training.local_steps=2"}) {}
  std::vector<std::string> run() {
    federation.data_directories = {{"text", texts.path().string()}};
    federation.add_client();
    federation.add_client();
    federation.run_to_the_end();
    REQUIRE(federation.hashes().size() == 2);
    return federation.hashes();
  }
  Federation federation;
};

}  // namespace

TEST_CASE("shared base: devices with one directory write the base once, and the models stay the same") {
  for (const std::string dtype : {"float32", "int8"}) {
    CAPTURE(dtype);
    const std::vector<std::string> expected = Tuning(dtype).run();
    CHECK(expected[0] != expected[1]);
    const learn::test::TemporaryDirectory shared;
    Tuning sharing(dtype);
    sharing.federation.shared_bases = shared.path() / "bases";
    std::vector<FileIdentity> files;
    sharing.federation.after_round = [&] {
      for (const auto& entry : std::filesystem::directory_iterator(shared.path() / "bases")) {
        if (entry.path().extension() != ".fedge-base") continue;
        const auto identity = identity_of(entry.path());
        REQUIRE(identity);
        files.push_back(*identity);
      }
    };
    CHECK(sharing.run() == expected);
    REQUIRE(files.size() == 2);  // after each round, one
    CHECK(files[0] == files[1]);
    for (const std::string& event : sharing.federation.client_events)
      CHECK_MESSAGE(event.find("base.unshared") == std::string::npos, event);
  }
}

TEST_CASE("shared base: a directory that disappears costs the sharing, and the owner reads why") {
  const std::vector<std::string> expected = Tuning().run();
  const learn::test::TemporaryDirectory shared;
  Tuning sharing;
  sharing.federation.shared_bases = shared.path() / "bases";
  sharing.federation.after_round = [&] { std::filesystem::remove_all(shared.path() / "bases"); };
  CHECK(sharing.run() == expected);
  CHECK(Federation::count(sharing.federation.client_events, "base.unshared") == 2);
  CHECK(Federation::count(sharing.federation.client_events, (shared.path() / "bases").string()) == 2);
}
