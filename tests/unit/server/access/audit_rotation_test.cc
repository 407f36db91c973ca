// An audit log of several files: what is read over them, and what is noticed when they are changed.
#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/files.h"
#include "server/audit_log.h"
#include "server/enrolment.h"
#include "server/store/detail/audit_file.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::server {
namespace {

struct Rotated {
  test::TemporaryDirectory directory;

  std::filesystem::path file(int number = 0) const {
    return directory.path() / (number == 0 ? "audit.log" : "audit." + std::to_string(number) + ".log");
  }
  AuditLog log() const {
    return AuditLog(directory.path(), [] { return UnixSeconds{1'795'300'800}; });
  }
  void add(int count) const {
    for (int i = 0; i < count; ++i)
      REQUIRE(log().append({"uid 1", "token.created", "token " + std::to_string(i), {}}));
  }
  // Three closed files of different sizes and audit.log: 4, 1 + 2, 1 + 3 and 1 + 2 entries.
  Rotated() {
    for (const int count : {4, 2, 3}) {
      add(count);
      REQUIRE(*log().rotate(1));
    }
    add(2);
  }
  std::string text(int number) const { return *read_file(file(number), 1 << 20); }
  void write(int number, const std::string& text) const {
    std::ofstream(file(number), std::ios::binary) << text;
  }
  std::string fault() const {
    const auto verified = log().verify();
    return verified ? "none" : verified.error().message;
  }
  std::vector<AuditEntry> all() const {
    std::vector<AuditEntry> entries;
    REQUIRE(log().verify("", [&](const AuditEntry& entry) { entries.push_back(entry); }));
    return entries;
  }
};

std::vector<std::uint64_t> sequences_of(const std::vector<AuditEntry>& entries) {
  std::vector<std::uint64_t> numbers;
  for (const AuditEntry& entry : entries) numbers.push_back(entry.sequence);
  return numbers;
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE(
    "rotation: the closed files and audit.log are one chain, and each file begins with what it continues") {
  const Rotated trail;
  const auto entries = trail.all();
  REQUIRE(entries.size() == 14);
  for (std::size_t i = 0; i < entries.size(); ++i) CHECK(entries[i].sequence == i + 1);
  CHECK(entries[4].event.action == "log.rotated");
  CHECK(entries[4].event.subject == "audit.1.log");
  CHECK(entries[4].event.details.at(0).second == "4");
  CHECK(entries[4].event.details.at(1).second == entries[3].hash);
  CHECK(trail.text(2).find(R"({"seq":5,)") == 0);
  CHECK(trail.text(0).find(R"({"seq":12,)") == 0);
  CHECK(*trail.log().last() == 14);
  CHECK(trail.log().verify(entries[1].hash));  // a head that was noted long ago
  CHECK_FALSE(trail.log().verify(std::string(64, 'b')));
  for (std::uint64_t after = 0; after <= 15; ++after)
    for (const std::size_t most : {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{100}}) {
      std::vector<std::uint64_t> wanted;
      for (std::uint64_t number = after + 1; number <= 14 && wanted.size() < most; ++number)
        wanted.push_back(number);
      CAPTURE(after);
      CAPTURE(most);
      const auto found = trail.log().entries_after(after, most);
      REQUIRE(found);
      CHECK(sequences_of(*found) == wanted);
    }
}

TEST_CASE("rotation: a closed file that is removed, exchanged, cut or added is noticed and named") {
  const Rotated trail;
  const auto lose = [&](int number) {
    const std::string text = trail.text(number);
    std::filesystem::remove(trail.file(number));
    const std::string fault = trail.fault();
    trail.write(number, text);
    return fault;
  };
  CHECK(mentions(lose(1), "audit.1.log is missing, but audit.2.log continues it"));
  CHECK(mentions(lose(2), "audit.2.log is missing, but audit.3.log continues it"));
  CHECK(mentions(lose(3), "audit.log line 1: it does not continue the end of " + trail.file(2).string()));
  CHECK(mentions(lose(0), "has 11 entries, but entry 14 (recorded in audit.head) is not among them"));
  CHECK(trail.fault() == "none");
  const std::string one = trail.text(1);
  const std::string two = trail.text(2);
  trail.write(1, two);
  trail.write(2, one);
  CHECK(mentions(trail.fault(), "audit.1.log line 1: it does not continue an empty log"));
  trail.write(1, one);
  CHECK(mentions(trail.fault(), "audit.2.log line 1: it does not continue the end of"));
  trail.write(2, two);
  for (std::size_t size = 0; size < two.size(); ++size) {
    trail.write(2, two.substr(0, size));
    CAPTURE(size);
    REQUIRE(trail.fault() != "none");
  }
  trail.write(2, two);
  trail.write(5, trail.text(0));
  CHECK(mentions(trail.fault(), "audit.4.log is missing, but audit.5.log continues it"));
  std::filesystem::remove(trail.file(5));
  trail.write(4, trail.text(3));
  CHECK(mentions(trail.fault(), "audit.4.log line 1: it does not continue the end of"));
  std::filesystem::remove(trail.file(4));
  CHECK(trail.fault() == "none");
  // Without the closed files, audit.log is no log of its own.
  for (const int number : {1, 2, 3}) std::filesystem::remove(trail.file(number));
  CHECK(mentions(trail.fault(), "audit.log line 1: it does not continue an empty log"));
}

TEST_CASE("rotation: every flipped byte of every file is detected") {
  const Rotated trail;
  for (const int number : {0, 1, 2, 3}) {
    const std::string good = trail.text(number);
    for (std::size_t at = 0; at < good.size(); at += 3) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 1);
      trail.write(number, bad);
      CAPTURE(number);
      CAPTURE(at);
      REQUIRE(trail.fault() != "none");
    }
    trail.write(number, good);
  }
  CHECK(trail.fault() == "none");
}

TEST_CASE("rotation: a crash at any step leaves a log that verifies, and that the next entry continues") {
  const Rotated trail;
  const std::string before = trail.text(0);
  const std::string head = *read_file(trail.directory.path() / "audit.head", 1000);
  REQUIRE(*trail.log().rotate(1));
  const std::string line = trail.text(0);
  const auto next = [&] {
    trail.add(1);
    const auto entries = trail.all();
    return entries.back().sequence;
  };
  SUBCASE("renamed, and no new file yet") {
    std::filesystem::remove(trail.file());
    std::ofstream(trail.directory.path() / "audit.head", std::ios::binary) << head;
    CHECK(trail.fault() == "none");
    CHECK(*trail.log().last() == 14);
    CHECK(sequences_of(*trail.log().entries_after(12)) == std::vector<std::uint64_t>{13, 14});
    CHECK(trail.log().mark()->closed.size() == 4);
    CHECK_FALSE(*trail.log().rotate(1));
    CHECK(next() == 15);
  }
  SUBCASE("a torn first line in the new file") {
    for (std::size_t size = 0; size < line.size(); ++size) {
      trail.write(0, line.substr(0, size));
      std::ofstream(trail.directory.path() / "audit.head", std::ios::binary) << head;
      CAPTURE(size);
      REQUIRE(*trail.log().last() == 14);
      REQUIRE(sequences_of(*trail.log().entries_after(13)) == std::vector<std::uint64_t>{14});
      REQUIRE_FALSE(*trail.log().rotate(1));
      REQUIRE(next() == (size == 0 ? 15 : 16));  // the repair is an entry, too
    }
  }
  SUBCASE("the line is there, and audit.head is not yet") {
    std::ofstream(trail.directory.path() / "audit.head", std::ios::binary) << head;
    CHECK(trail.fault() == "none");
    CHECK(next() == 16);
  }
  SUBCASE("not renamed") {
    std::filesystem::remove(trail.file(4));
    trail.write(0, before);
    std::ofstream(trail.directory.path() / "audit.head", std::ios::binary) << head;
    CHECK(trail.fault() == "none");
    REQUIRE(*trail.log().rotate(1));
    CHECK(next() == 16);
  }
}

TEST_CASE("rotation: a log with a torn or lost end is not closed before that is recorded") {
  const Rotated trail;
  const std::string good = trail.text(0);
  trail.write(0, good + "{\"seq\":15");
  CHECK_FALSE(*trail.log().rotate(1));
  trail.write(0, good.substr(0, good.find('\n') + 1));
  CHECK_FALSE(*trail.log().rotate(1));
  CHECK_FALSE(std::filesystem::exists(trail.file(4)));
  trail.write(0, good);
  CHECK_FALSE(*trail.log().rotate(good.size() + 1));  // too small
  CHECK(*trail.log().rotate(good.size()));
  // Nothing is ever written over.
  std::filesystem::create_directory(trail.directory.path() / "elsewhere");
  std::filesystem::create_symlink(trail.directory.path() / "elsewhere", trail.file(5));
  const auto blocked = trail.log().rotate(1);
  CHECK((!blocked || std::filesystem::exists(trail.file(6))));
  CHECK(std::filesystem::is_symlink(trail.file(5)));
  CHECK(mentions(trail.fault(), "audit.5.log"));
}

TEST_CASE("rotation: writers and readers at the same time lose nothing and see one chain") {
  const test::TemporaryDirectory directory;
  const AuditLog log(directory.path());
  REQUIRE(log.append({"uid 1", "token.created", "first", {}}));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 40; ++j)
        CHECK(AuditLog(directory.path()).append({"uid 1", "token.created", "x", {}}));
    });
  threads.emplace_back([&] {
    for (int j = 0; j < 40; ++j) CHECK(AuditLog(directory.path()).rotate(500));
  });
  threads.emplace_back([&] {
    for (int j = 0; j < 40; ++j) {
      const auto verified = AuditLog(directory.path()).verify();
      CHECK_MESSAGE(verified, verified.error().message);
      const auto after = AuditLog(directory.path()).entries_after(0);
      REQUIRE(after);
      for (std::size_t i = 0; i < after->size(); ++i) CHECK((*after)[i].sequence == i + 1);
    }
  });
  for (std::thread& thread : threads) thread.join();
  std::size_t written = 0;
  std::size_t rotations = 0;
  REQUIRE(log.verify("", [&](const AuditEntry& entry) {
    written += entry.event.subject == "x" ? 1U : 0U;
    rotations += entry.event.action == "log.rotated" ? 1U : 0U;
  }));
  CHECK(written == 120);
  CHECK(rotations >= 1);
  CHECK(audit_segments(directory.path())->size() == rotations);
}

TEST_CASE("rotation: an older enrolment book is made good from all files of the log") {
  const test::TemporaryDirectory directory;
  const auto file = directory.path() / "enrolment.db";
  PublicKey key;
  key.bytes.fill(3);
  Enrolment book(directory.path());
  REQUIRE(book.add(key, 1000));
  std::filesystem::copy_file(file, directory.path() / "old.db");
  const AuditLog log(directory.path());
  REQUIRE(book.revoke(ClientId(0)));
  REQUIRE(*log.rotate(1));
  key.bytes.fill(4);
  REQUIRE(book.add(key, 1000));
  REQUIRE(*log.rotate(1));
  key.bytes.fill(5);
  REQUIRE(book.add(key, 1000));
  std::filesystem::copy_file(directory.path() / "old.db", file,
                             std::filesystem::copy_options::overwrite_existing);
  Enrolment restored(directory.path());
  REQUIRE(restored.take_up(key));
  const auto clients = restored.read()->clients;
  REQUIRE(clients.size() == 3);
  CHECK(clients[0].state == ClientState::kRevoked);
  CHECK(clients[2].key == key);
  CHECK(log.verify());
}

TEST_CASE("rotation: only names of closed files are taken for them") {
  CHECK(audit_segment_number("audit.1.log") == 1);
  CHECK(audit_segment_number("audit.120.log") == 120);
  for (const char* name :
       {"audit.log", "audit..log", "audit.0.log", "audit.01.log", "audit.x.log", "audit.1.log.gz",
        "audit.-1.log", "audit.+1.log", "audit.1 .log", "audit.head", "audit.99999999999999999999.log"})
    CHECK_MESSAGE(audit_segment_number(name) == 0, name);
}

}  // namespace fedge::server
