#include "server/audit_log.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using server::AuditEntry;
using server::AuditLog;

namespace {

struct Trail {
  test::TemporaryDirectory directory;

  std::filesystem::path file() const { return directory.path() / "audit.log"; }
  AuditLog log() const {
    return AuditLog(directory.path(), [] { return server::UnixSeconds{1'795'300'800}; });
  }
  void add(const std::string& subject) const {
    REQUIRE(log().append({"uid 1000", "client.revoked", subject, {{"reason", "\"lost\"\nphone"}}}));
  }
  std::string text() const { return *read_file(file(), 1 << 20); }
  void write(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }
  std::filesystem::path head() const { return directory.path() / "audit.head"; }
  std::string head_text() const { return *read_file(head(), 1000); }
  // Writes the files as a crash leaves them: the end of the log is torn, and the head still names an earlier
  // entry.
  void crash(const std::string& text, const std::string& head_before) const {
    write(text);
    std::ofstream(head(), std::ios::binary) << head_before;
  }
  std::string fault() const {
    const auto verified = log().verify();
    return verified ? "none" : verified.error().message;
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    lines.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

TEST_CASE("audit log: a line is the text that its format says, down to the byte") {
  const Trail trail;
  trail.add("client 3");
  trail.add("client 4");
  // Computed with Python's hashlib.
  const std::string zeros(64, '0');
  const std::string first =
      R"({"seq":1,"time":"2026-11-21T22:40:00Z","actor":"uid 1000","action":"client.revoked",)"
      R"("subject":"client 3","details":{"reason":"\"lost\"?phone"},"previous":")" +
      zeros + "\"";
  const std::string hash = "9e230939bb5ae83daefa623e2bc188315e6a23bf03254f2da7b9a79914e649fd";
  CHECK(lines_of(trail.text())[0] == first + ",\"hash\":\"" + hash + "\"}\n");
  CHECK(lines_of(trail.text())[1].find(R"("seq":2,)") == 1);
  CHECK(lines_of(trail.text())[1].find("\"previous\":\"" + hash + "\"") != std::string::npos);
  struct stat info {};
  REQUIRE(::stat(trail.file().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("audit log: what was appended is read back in order, with the last hash as its head") {
  const Trail trail;
  CHECK(trail.log().verify().error().code == ErrorCode::kNotFound);
  for (int i = 0; i < 5; ++i) trail.add("client " + std::to_string(i));
  std::vector<AuditEntry> entries;
  const auto summary = trail.log().verify("", [&](const AuditEntry& entry) { entries.push_back(entry); });
  REQUIRE(summary);
  CHECK(summary->entries == 5);
  REQUIRE(entries.size() == 5);
  CHECK(summary->head == entries[4].hash);
  CHECK(entries[3].event.subject == "client 3");
  CHECK(entries[3].event.details.at(0).second == "\"lost\"?phone");
  CHECK(entries[0].previous == std::string(64, '0'));
}

TEST_CASE("row 36: audit log: every flipped byte of a real log is detected") {
  const Trail trail;
  for (int i = 0; i < 3; ++i) trail.add("client " + std::to_string(i));
  const std::string good = trail.text();
  for (std::size_t at = 0; at < good.size(); ++at)
    for (const char mask : {'\x01', '\x20', '\x7f'}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ mask);
      trail.write(bad);
      const auto verified = trail.log().verify();
      CAPTURE(at);
      REQUIRE_FALSE(verified);
      REQUIRE(verified.error().code == ErrorCode::kCorrupt);
    }
  trail.write(good);
  CHECK(trail.fault() == "none");
}

TEST_CASE("row 8: audit log: a cut at every byte is detected, also at the end of a line") {
  const Trail trail;
  for (int i = 0; i < 3; ++i) trail.add("client " + std::to_string(i));
  const std::string good = trail.text();
  const std::string head = trail.log().verify()->head;
  for (std::size_t size = 0; size < good.size(); ++size) {
    trail.write(good.substr(0, size));
    CAPTURE(size);
    REQUIRE_FALSE(trail.log().verify());
    REQUIRE_FALSE(trail.log().verify(head));
  }
  trail.write(good);
  CHECK(trail.log().verify(head));
  trail.add("later");  // later entries may follow an expected head
  CHECK(trail.log().verify(head));
  CHECK(trail.log().verify(std::string(64, 'a')).error().message ==
        trail.file().string() + ": none of its 4 entries has the hash " + std::string(64, 'a') +
            "; either the hash is mistyped, or the log was truncated or replaced");
}

TEST_CASE("audit log: lines that are swapped, left out, doubled or foreign are named with their number") {
  const Trail trail;
  for (int i = 0; i < 4; ++i) trail.add("client " + std::to_string(i));
  const auto lines = lines_of(trail.text());
  const auto fault = [&](std::vector<std::string> changed) {
    trail.write(joined(changed));
    return trail.fault().substr(trail.file().string().size());
  };
  const std::string order = "; lines were removed, inserted or moved";
  CHECK(fault({lines[0], lines[2], lines[1], lines[3]}) == " line 2: it does not continue line 1" + order);
  CHECK(fault({lines[0], lines[1], lines[3]}) == " line 3: it does not continue line 2" + order);
  CHECK(fault({lines[1], lines[2], lines[3]}) == " line 1: it does not continue an empty log" + order);
  CHECK(fault({lines[0], lines[0], lines[1]}) == " line 2: it does not continue line 1" + order);
  CHECK(fault({lines[0], "\n", lines[1]}) == " line 2: it does not end with a hash");
  CHECK(fault({lines[0], std::string(100'000, 'x') + "\n"}) ==
        " line 2: it is longer than the maximum length of an entry");
  std::string other = lines[1];
  other.replace(other.find("client 1"), 8, "client 7");
  CHECK(fault({lines[0], other}) == " line 2: its hash does not match its content");
}

TEST_CASE("audit log: another text for the same entry, even with a good hash, is not taken") {
  const std::string zeros(64, '0');
  const auto with = [&](const std::string& body) {
    return server::parse_audit_entry(body + ",\"hash\":\"" + to_hex(sha256(zeros + body)) + "\"}");
  };
  const std::string head = R"({"seq":1,"time":"t","actor":"a","action":"b","subject":"c","details":{)";
  const std::string tail = "},\"previous\":\"" + zeros + "\"";
  CHECK(with(head + tail));
  CHECK_FALSE(with(head + R"("k":"v","k":"w")" + tail));
  CHECK_FALSE(with(head + R"("k":1)" + tail));
  CHECK_FALSE(with(head + tail + R"(,"more":"x")"));
  CHECK_FALSE(with(" " + head + tail));
  CHECK_FALSE(with(head + R"("k":"\u0041")" + tail));
  CHECK_FALSE(with(std::string(4000, '[')));
}

TEST_CASE("row 8: audit log: a line torn at any byte is cut off by the next writer, who says so") {
  const Trail trail;
  trail.add("client 0");
  const std::string first = trail.text();
  const std::string head = trail.head_text();
  trail.add("client 1");
  const std::string both = trail.text();
  for (std::size_t size = first.size() + 1; size < both.size(); ++size) {
    trail.crash(both.substr(0, size), head);
    CAPTURE(size);
    REQUIRE(trail.fault().find("line 2: it is incomplete") != std::string::npos);
    trail.add("client 2");
    std::vector<AuditEntry> entries;
    REQUIRE(trail.log().verify("", [&](const AuditEntry& entry) { entries.push_back(entry); }));
    REQUIRE(entries.size() == 3);
    CHECK(entries[1].event.action == "log.repaired");
    CHECK(entries[1].event.subject == "line 2");
    CHECK(entries[1].event.details.at(0).second == std::to_string(size - first.size()));
    CHECK(entries[1].event.details.at(1).second ==
          to_hex(sha256(both.substr(first.size(), size - first.size()))));
    CHECK(entries[2].event.subject == "client 2");
  }
}

TEST_CASE("row 8: audit log: a torn first line, and a tail of zeros, are cut off as well") {
  const Trail trail;
  trail.add("client 0");
  const std::string first = trail.text();
  const std::string head = trail.head_text();
  trail.crash(first.substr(0, 20), "");
  trail.add("client 1");
  CHECK(trail.log().verify()->entries == 2);
  trail.crash(first + std::string(4096, '\0'), head);
  trail.add("client 1");
  CHECK(trail.log().verify()->entries == 3);
}

TEST_CASE("R3 row 9: audit log: nothing is appended to a log whose last line does not verify") {
  const Trail trail;
  trail.add("client 0");
  std::string bad = trail.text();
  bad[30] = static_cast<char>(bad[30] ^ 1);
  trail.write(bad);
  const auto appended = trail.log().append({"uid 1", "token.created", "token 1", {}});
  REQUIRE_FALSE(appended);
  CHECK(appended.error().code == ErrorCode::kCorrupt);
  CHECK(appended.error().message.find("fedge audit verify") != std::string::npos);
  CHECK(trail.text() == bad);
  trail.write(std::string(100'000, 'x'));
  CHECK(trail.log().append({"uid 1", "token.created", "", {}}).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("audit log: writers at the same time lose nothing and keep one chain") {
  const Trail trail;
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&, i] {
      for (int j = 0; j < 25; ++j) {
        const auto done = trail.log().append({"uid 1", "token.created", std::to_string(100 * i + j), {}});
        CHECK(done);
      }
    });
  for (std::thread& writer : writers) writer.join();
  std::vector<std::string> subjects;
  REQUIRE(trail.log().verify("", [&](const AuditEntry& e) { subjects.push_back(e.event.subject); }));
  std::sort(subjects.begin(), subjects.end());
  CHECK(subjects.size() == 100);
  CHECK(std::unique(subjects.begin(), subjects.end()) == subjects.end());
}

TEST_CASE("row 56: audit log: texts from outside are cut and made harmless, and lines stay short") {
  const Trail trail;
  const std::string nasty = "a\nb\x1b[31m\xff" + std::string(100'000, 'x');
  REQUIRE(trail.log().append({nasty, nasty, nasty, {{nasty, nasty}}}));
  CHECK(trail.text().size() < 4096);
  CHECK(lines_of(trail.text()).size() == 1);
  CHECK(trail.text().find('\x1b') == std::string::npos);
  CHECK(trail.fault() == "none");
  server::AuditEvent many{"a", "b", "c", {}};
  for (int i = 0; i < 100; ++i) many.details.emplace_back(std::to_string(i), std::string(500, 'x'));
  CHECK(trail.log().append(many).error().code == ErrorCode::kResource);
  CHECK(trail.fault() == "none");
}

TEST_CASE("A3 row 41: audit log: a symbolic link in its place is not followed") {
  const Trail trail;
  const auto elsewhere = trail.directory.path() / "elsewhere";
  std::ofstream(elsewhere) << "";
  std::filesystem::create_symlink(elsewhere, trail.file());
  CHECK(trail.log().append({"uid 1", "token.created", "", {}}).error().code == ErrorCode::kRefused);
  CHECK(std::filesystem::file_size(elsewhere) == 0);
}

TEST_CASE("a log that was moved away, cut off or put back from a backup does not verify") {
  const Trail trail;
  trail.add("client 0");
  const std::string backup = trail.text();
  trail.add("client 1");
  trail.add("client 2");
  const std::string whole = trail.text();
  std::size_t lost = 0;
  SUBCASE("moved away") { std::filesystem::remove(trail.file()); }
  SUBCASE("cut off") {
    trail.write(backup);
    lost = 1;
  }
  CHECK_MESSAGE(
      trail.fault().find("has " + std::to_string(lost) +
                         " entries, but entry 3 (recorded in audit.head) is not") != std::string::npos,
      trail.fault());
  // Later entries do not hide the loss either: they continue the lost entries, and with these the log
  // verifies again.
  trail.add("client 3");
  CHECK(trail.fault() != "none");
  const std::string after = trail.text().substr(lost * backup.size());
  trail.write(whole + after);
  CHECK_MESSAGE(trail.fault() == "none", trail.fault());
  std::vector<AuditEntry> entries;
  REQUIRE(trail.log().verify("", [&](const AuditEntry& entry) { entries.push_back(entry); }));
  REQUIRE(entries.size() == 5);
  CHECK(entries[3].event.action == "log.gap");
  CHECK(entries[4].sequence == 5);
}

TEST_CASE("audit log: a log that another was put in the place of does not verify, and is not gone on with") {
  const Trail trail;
  const Trail other;
  for (int i = 0; i < 2; ++i) trail.add("client " + std::to_string(i));
  for (int i = 0; i < 2; ++i) other.add("client " + std::to_string(i + 5));
  trail.write(other.text());
  CHECK(trail.fault() != "none");
  trail.add("client 2");
  CHECK(trail.fault().find("line 3: it does not continue line 2") != std::string::npos);
}

TEST_CASE("audit log: one that an older version began has no recorded head, and verifies as before") {
  const Trail trail;
  for (int i = 0; i < 2; ++i) trail.add("client " + std::to_string(i));
  std::filesystem::remove(trail.head());
  CHECK(trail.fault() == "none");
  CHECK(*trail.log().last() == 2);
  trail.add("client 2");
  CHECK(trail.fault() == "none");
  CHECK(std::filesystem::exists(trail.head()));
}

TEST_CASE("audit log: a crash between an entry and its recorded head loses neither") {
  const Trail trail;
  trail.add("client 0");
  const std::string head = trail.head_text();
  trail.add("client 1");
  trail.crash(trail.text(), head);
  CHECK(trail.fault() == "none");
  CHECK(*trail.log().last() == 2);
  trail.add("client 2");
  CHECK(trail.log().verify()->entries == 3);
}

TEST_CASE("audit log: the entries after a number are those, wherever they begin in a long log") {
  const Trail trail;
  const std::string filling(500, 'x');
  for (int i = 1; i <= 400; ++i)
    REQUIRE(trail.log().append({"uid 1", filling, std::to_string(i), {{"a", filling}, {"b", filling}}}));
  for (const std::uint64_t after : {0U, 1U, 200U, 399U, 400U}) {
    CAPTURE(after);
    const auto entries = trail.log().entries_after(after);
    REQUIRE(entries);
    REQUIRE(entries->size() == 400 - after);
    if (!entries->empty()) CHECK(entries->front().event.subject == std::to_string(after + 1));
  }
}
