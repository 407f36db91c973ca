#include "server/store/journal_reader.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "server/store/input_codec.h"
#include "server/store/sqlite_store.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::server;

namespace {

struct Journal {
  learn::test::TemporaryDirectory directory;
  std::unique_ptr<RunStore> store;
  RunNumber run;
  explicit Journal(const std::vector<std::string>& inputs) {
    auto opened = open_sqlite_store(run_store_path(directory.path()));
    REQUIRE(opened);
    store = std::move(*opened);
    const auto number = store->submit({.id = RunId(7), .name = "run", .document = ""});
    REQUIRE(number);
    run = *number;
    Batch batch{.run = run, .entries = {}, .checkpoint = {}};
    for (const std::string& input : inputs)
      batch.entries.push_back({batch.entries.size() + 1, Time(seconds(double(batch.entries.size()))), input});
    REQUIRE(store->append({&batch, 1}));
  }
};

std::string stored(std::uint32_t client) {
  return encode_record(RunEngine::Input(RunEngine::Stored{ClientId(client), {RoundNumber(1), TrackId()}}));
}

}  // namespace

TEST_CASE(
    "journal reader: an update that was lost later is read as its client's departure, others as stored") {
  Journal journal({stored(4), stored(5), encode_record(LostUpdate{2}), stored(5)});
  std::vector<std::string> seen;
  REQUIRE(read_inputs(*journal.store, journal.run, [&](const JournalStep& step) -> Result<void> {
    CHECK(step.sequence == seen.size() + 1);
    CHECK(step.time == Time(seconds(static_cast<double>(seen.size()))));
    if (!step.input)
      seen.emplace_back("note");
    else if (const auto* left = std::get_if<RunEngine::ClientLeft>(&*step.input))
      seen.push_back("left " + std::to_string(left->client.value()));
    else
      seen.push_back("stored " + std::to_string(std::get<RunEngine::Stored>(*step.input).client.value()));
    return {};
  }));
  CHECK(seen == std::vector<std::string>{"stored 4", "left 5", "note", "stored 5"});
}

TEST_CASE("journal reader: an entry of no known kind is named before any is visited") {
  Journal journal({stored(4), "\x01nonsense", stored(5)});
  bool visited = false;
  const auto read = read_inputs(*journal.store, journal.run, [&](const JournalStep&) -> Result<void> {
    visited = true;
    return {};
  });
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::kCorrupt);
  CHECK(read.error().message.starts_with("entry 2 of the journal of run 1: "));
  CHECK_FALSE(visited);
}

TEST_CASE("journal reader: what is added while it reads is left for the next time") {
  Journal journal({stored(4)});
  std::size_t visits = 0;
  REQUIRE(read_inputs(*journal.store, journal.run, [&](const JournalStep&) -> Result<void> {
    ++visits;
    Batch more{.run = journal.run, .entries = {{2, Time(seconds(9)), stored(5)}}, .checkpoint = {}};
    return journal.store->append({&more, 1});
  }));
  CHECK(visits == 1);
}
