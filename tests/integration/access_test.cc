// Admission as an operator and a user see it: the programs and their files. No secret may appear outside its
// own file.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "client/membership.h"
#include "core/platform/files.h"
#include "protocol/codec.h"
#include "protocol/join_token.h"
#include "server/data_directory.h"
#include "server/enrolment.h"
#include "tests/faults/strace.h"
#include "tests/integration/coordinator_process.h"
#include "tests/integration/run_program.h"
#include "tests/support/text.h"
#include "tests/support/tiny_dataset.h"
#include "tests/unit/protocol/raw_peer.h"

using namespace fedge;
using test::CoordinatorProcess;
using test::LoggedProcess;
using test::Outcome;
using test::TemporaryDirectory;

namespace {

constexpr std::size_t kLarge = std::size_t{1} << 26;

using fedge::test::lines_of;

std::string base64(const std::string& bytes, const char* last_two) {
  const std::string alphabet =
      std::string("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") + last_two;
  std::string text;
  unsigned held = 0;
  int bits = 0;
  for (const char byte : bytes) {
    held = held << 8 | static_cast<unsigned char>(byte);
    for (bits += 8; bits >= 6; bits -= 6) text += alphabet[held >> (bits - 6) & 63];
  }
  return text;
}

std::string to_hex(const std::string& bytes, const char* digits) {
  std::string text;
  for (const char byte : bytes) {
    text += digits[static_cast<unsigned char>(byte) >> 4];
    text += digits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

// Adds the secret as it is, in hexadecimal, and in base64 at each offset within a longer text.
void add_forms(const std::string& secret, std::vector<std::string>& needles) {
  needles.push_back(secret);
  needles.push_back(to_hex(secret, "0123456789abcdef"));
  needles.push_back(to_hex(secret, "0123456789ABCDEF"));
  for (const char* last_two : {"+/", "-_"})
    for (std::size_t shift = 0; shift < 3; ++shift) {
      const std::string text = base64(std::string(shift, '\0') + secret, last_two);
      needles.push_back(text.substr((shift * 8 + 5) / 6));
    }
}

// The forms of a secret that is written in hexadecimal.
std::vector<std::string> forms_of(const std::string& hex) {
  std::vector<std::string> needles;
  add_forms(hex, needles);
  add_forms(from_hex(hex), needles);
  return needles;
}

bool holds(const std::string& text, const std::vector<std::string>& needles) {
  return std::any_of(needles.begin(), needles.end(),
                     [&](const std::string& needle) { return text.find(needle) != std::string::npos; });
}

// Returns the files under a directory, except the key files, that contain one of the needles.
std::vector<std::string> found_in(const std::filesystem::path& directory,
                                  const std::vector<std::string>& needles, std::size_t& scanned) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file() || entry.path().filename() == "node.key") continue;
    ++scanned;
    if (holds(*read_file(entry.path(), kLarge), needles)) found.push_back(entry.path().string());
  }
  return found;
}

std::string seed_of(const std::filesystem::path& key_file) {
  const auto text = read_file(key_file, 1024);
  REQUIRE(text);
  return text->substr(text->find(' ') + 1, 64);
}

// An operator's environment: a data directory and the tools.
struct AccessSite {
  TemporaryDirectory root;
  std::string data() const { return (root.path() / "coordinator").string(); }
  Outcome fedge(const std::string& what) const {
    return test::run("fedge " + what + " --data-dir " + data());
  }
  std::string tokens(const std::string& more) const {
    const Outcome made = fedge("token create --address 127.0.0.1:7433 " + more);
    REQUIRE_MESSAGE(made.code == 0, made.output);
    return made.output;
  }
};

// A federation of real programs that leaves all traces under one directory.
struct WatchedSite : AccessSite {
  TemporaryDirectory dataset;
  TemporaryDirectory secrets;  // the users' own token files
  std::vector<std::string> needles;

  WatchedSite() { test::write_tiny_dataset(dataset); }
  std::filesystem::path at(const std::string& name) const { return root.path() / name; }
  CoordinatorProcess::Options coordinator() const {
    return {.directory = data(),
            .results = at("out"),
            .settings = {"data.directory=" + dataset.path().string(), "data.partition.clients=2",
                         "sampling.clients_per_round=2", "run.rounds=2"},
            .more = {"--log-level", "trace"}};
  }
  std::vector<std::string> client(const std::string& name, std::vector<std::string> more) const {
    more.insert(more.begin(),
                {FEDGE_BINARY_DIR "/fedge-client", "--state-dir", at(name).string(), "--log-level", "trace"});
    return more;
  }
  void note(const std::string& name, const Outcome& outcome) const {
    std::ofstream(at(name)) << outcome.output;
  }
  std::string token_file(const std::string& name, const std::string& token) const {
    std::ofstream(secrets.path() / name) << token << "\n";
    return (secrets.path() / name).string();
  }
  void keep_secret(const std::string& hex) {
    for (std::string& form : forms_of(hex)) needles.push_back(std::move(form));
  }
};

std::string secret_of(const std::string& token) {
  const auto parsed = protocol::parse_join_token(token);
  REQUIRE(parsed);
  return parsed->secret;
}

// Sends the secret as no client does: outside TLS, and in an invalid frame.
void misuse(const protocol::JoinToken& token) {
  boost::asio::io_context io;
  const auto& address = token.addresses.front();
  const auto dial = [&] {
    boost::asio::ip::tcp::socket socket(io);
    socket.connect({boost::asio::ip::make_address(address.host), address.port});
    return socket;
  };
  auto plain = dial();
  boost::asio::write(plain, boost::asio::buffer("GET /?token=" + token.secret + " HTTP/1.1\r\n\r\n"));
  std::string broken = protocol::encode_frame(protocol::Hello{.software = "test", .token = token.secret});
  broken[6] = 1;  // an undefined flag
  std::string foreign = broken;
  foreign[0] = 'X';
  for (const std::string& frame : {broken, foreign}) {
    protocol::RawPeer peer(protocol::TlsStream::connecting(
        dial(), *protocol::make_tls_identity(SecretKey::generate()), token.coordinator));
    peer.write(frame);
    for (peer.poll(); !peer.ended(); peer.poll())
      peer.stream().socket().wait(boost::asio::ip::tcp::socket::wait_read);
  }
}

}  // namespace

TEST_CASE("A4 row 46: canary: no token secret and no key is found anywhere but in its own file") {
  WatchedSite site;
  CoordinatorProcess coordinator(site.coordinator());
  const auto tokens = lines_of(site.fedge("token create --count 3").output);
  REQUIRE(tokens.size() == 3);
  for (const std::string& token : tokens) site.keep_secret(secret_of(token));
  auto parsed = *protocol::parse_join_token(tokens[0]);

  // The first client's token is an argument, which the program overwrites after reading it.
  LoggedProcess first(site.client("first", {"run", "--once", "--token", tokens[0]}), site.at("first.log"));
  REQUIRE_MESSAGE(first.wait_for("client.connected"), first.log());
  CHECK(read_file(first.in_proc("cmdline"), kLarge)->find("xxxxxxxx") != std::string::npos);
  for (const LoggedProcess* program : std::initializer_list<const LoggedProcess*>{&coordinator, &first}) {
    for (const char* file : {"cmdline", "environ"}) {
      const auto text = read_file(program->in_proc(file), kLarge);
      if (text) CHECK_FALSE(holds(*text, site.needles));
    }
    CHECK(read_file(program->in_proc("limits"), kLarge)
              ->find("Max core file size        0                    0 ") != std::string::npos);
  }
  // Errors: a wrong token, a revoked client, a used token, invalid frames.
  parsed.secret = std::string(64, 'd');
  site.keep_secret(parsed.secret);
  const std::string wrong = encode_join_token(parsed);
  site.note("wrong.log",
            test::run("fedge-client --state-dir " + site.at("wrong").string() + " join " + wrong));
  const std::string third = "fedge-client --log-level trace --state-dir " + site.at("third").string();
  CHECK(test::run(third + " join --token-file - < " + site.token_file("third", tokens[2])).code == 0);
  CHECK(site.fedge("client revoke 2").code == 0);
  const Outcome revoked = test::run(third + " run --once");
  CHECK(revoked.code == 1);
  CHECK(revoked.output.find("this client's key has been revoked") != std::string::npos);
  site.note("revoked.log", revoked);
  site.note("used.log",
            test::run("fedge-client --state-dir " + site.at("used").string() + " join " + tokens[0]));
  misuse(*protocol::parse_join_token(tokens[1]));

  const std::string file = site.token_file("second", tokens[1]);
  LoggedProcess second(site.client("second", {"run", "--once", "--token-file", file}), site.at("second.log"));
  CHECK(coordinator.wait() == 0);
  CHECK(first.wait() == 0);
  CHECK(second.wait() == 0);
  for (const char* command :
       {"token ls", "client ls --format json", "client show 0", "audit ls", "audit verify"})
    site.note(std::string(command) + ".log", site.fedge(command));
  for (const char* owner : {"coordinator", "first", "second", "third", "wrong"})
    site.keep_secret(seed_of(site.at(owner) / "node.key"));

  std::size_t scanned = 0;
  for (const std::string& leak : found_in(site.root.path(), site.needles, scanned)) FAIL_CHECK(leak);
  CHECK(scanned >= 20);
  CHECK(read_file(site.at("coordinator.log"), kLarge)->find("client.refused") != std::string::npos);
  CHECK(std::filesystem::exists(site.at("out") / "report.html"));
}

TEST_CASE("A4 row 46: other programs of the same user cannot look into the memory of a client") {
  const TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms::all);
  const auto at = [&](const char* name) { return (directory.path() / name).string(); };
  // Root may read everything: as root, start the client as another user.
  const std::string as = ::geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups " : "";
  std::filesystem::copy_file(FEDGE_BINARY_DIR "/fedge-client", at("fedge-client"));
  // The client waits for a token that never comes.
  REQUIRE(::mkfifo(at("never").c_str(), 0666) == 0);
  std::filesystem::permissions(at("never"), std::filesystem::perms::all);
  LoggedProcess client({"sh", "-c",
                        "exec " + as + at("fedge-client") + " --state-dir " + at("state") +
                            " join --token-file - <> " + at("never")},
                       at("log"));
  // Files in /proc that expose a process's memory belong to root once it is protected.
  const auto owner = [&] {
    struct stat status {};
    return ::stat(client.in_proc("environ").c_str(), &status) == 0 ? std::optional(status.st_uid)
                                                                   : std::nullopt;
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto waits = [&] {
    const auto text = read_file(client.in_proc("cmdline"), kLarge);
    return text && text->starts_with(at("fedge-client")) && owner() == 0U;
  };
  while (!waits() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  CHECK_MESSAGE(waits(), client.log());
}

TEST_CASE("A4 row 46: canary: a secret that is planted in any form is found") {
  const TemporaryDirectory directory;
  std::string hex = "00ff10";
  for (int i = 0; i < 29; ++i) hex += "c7";
  std::vector<std::string> planted = {hex, from_hex(hex), to_hex(hex, "0123456789abcdef"),
                                      to_hex(from_hex(hex), "0123456789ABCDEF")};
  for (const char* before : {"", "x", "xy", "xyz"})
    for (const std::string& secret : {hex, from_hex(hex)})
      planted.push_back(base64(before + secret + "more text", before[0] == '\0' ? "+/" : "-_"));
  for (const std::string& text : planted) {
    std::ofstream(directory.path() / "log") << "a line\ntoken=" << text << " of a log\n";
    std::size_t scanned = 0;
    CHECK(found_in(directory.path(), forms_of(hex), scanned).size() == 1);
  }
}

TEST_CASE(
    "A4 row 47: coordinator and client refuse a key that others could read or replace, and say what to do") {
  AccessSite site;
  site.tokens("");
  const auto client = site.root.path() / "client";
  REQUIRE(client::open_node_key(client));
  const auto key = server::open_coordinator_key(site.data());
  REQUIRE(client::write_membership(client, {{{"127.0.0.1", 1}}, key->public_key(), ClientId(0)}));
  const std::pair<std::filesystem::path, std::string> owners[] = {
      {site.data(),
       "fedge-coordinator --run " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --data-dir " + site.data()},
      {client, "fedge-client --state-dir " + client.string() + " run"},
      {client, "fedge-client --state-dir " + client.string() + " status"}};
  for (const auto& [directory, command] : owners) {
    const auto file = directory / "node.key";
    const auto refused = [&, command = command](const std::string& what) {
      const Outcome outcome = test::run(command);
      CHECK(outcome.code == 1);
      CHECK_MESSAGE(outcome.output.find(what) != std::string::npos, outcome.output);
    };
    for (const mode_t mode : {0644U, 0640U, 0604U, 0660U, 0666U, 0700U}) {
      REQUIRE(::chmod(file.c_str(), mode) == 0);
      refused("run: chmod 600 " + file.string());
    }
    REQUIRE(::chmod(file.c_str(), 0600) == 0);
    for (const mode_t mode : {0770U, 0707U, 0777U}) {
      REQUIRE(::chmod(directory.c_str(), mode) == 0);
      refused("run: chmod go-w " + directory.string());
    }
    REQUIRE(::chmod(directory.c_str(), 0700) == 0);
    const auto kept = site.root.path() / "kept.key";
    std::filesystem::rename(file, kept);
    std::filesystem::create_symlink(kept, file);
    refused(file.string() + " is a symbolic link");
    std::filesystem::remove(file);
    std::filesystem::rename(kept, file);
  }
}

TEST_CASE("access: tokens for several uses, approval and revocation, in tables and as JSON") {
  const AccessSite site;
  site.tokens("--uses 50 --approve");
  site.tokens("--count 2");
  const Outcome table = site.fedge("token ls");
  REQUIRE(table.code == 0);
  CHECK(table.output.find("1  open      0    50  yes") != std::string::npos);
  CHECK(site.fedge("token revoke 2").output == "token 2 is revoked\n");
  const auto tokens = nlohmann::json::parse(site.fedge("token ls --format json").output);
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[0]["approve"] == true);
  CHECK(tokens[0]["client"].is_null());
  CHECK(tokens[1]["state"] == "revoked");
  CHECK(tokens[2]["client"] == 1);
  const auto made = nlohmann::json::parse(site.tokens("--format json"));
  CHECK(made[0]["join"].get<std::string>().starts_with("fedge1."));

  server::Enrolment enrolment(site.data());
  const std::string text = lines_of(site.tokens("--uses 2 --approve"))[0];
  REQUIRE(enrolment.redeem({.secret = secret_of(text), .key = SecretKey::generate().public_key()}));
  const auto clients = nlohmann::json::parse(site.fedge("client ls --format json").output);
  REQUIRE(clients.size() >= 4);  // by number, with those that unused tokens invite
  CHECK(clients[3]["client"] == 3);
  CHECK(clients[3]["state"] == "pending");
  CHECK(site.fedge("client approve 3").code == 0);
  CHECK(nlohmann::json::parse(site.fedge("client show 3 --format json").output)["state"] == "enrolled");
  CHECK(site.fedge("client show 3").output.starts_with("client        3\nstate         enrolled\n"));
  CHECK(site.fedge("client approve 3").code == 1);
  CHECK(site.fedge("client revoke 3").output ==
        "client 3 is revoked; token 5 is revoked too, because the client knows it and others could join with "
        "it\n");
  CHECK(nlohmann::json::parse(site.fedge("token ls --format json").output)[4]["state"] == "revoked");
  CHECK(site.fedge("client show 9").output ==
        "fedge: there is no client 9; list clients with: fedge client ls\n");
  CHECK(site.fedge("token revoke 9").code == 1);
}

TEST_CASE("access: fedge audit verifies the log, names the line that is wrong, and sees a cut by its head") {
  const AccessSite site;
  CHECK(site.fedge("audit verify").output.find("has no coordinator's data") != std::string::npos);
  site.tokens("--count 2");
  site.fedge("client revoke 1");
  const Outcome whole = site.fedge("audit verify");
  CHECK(whole.code == 0);
  CHECK(whole.output.starts_with("OK: 2 entries, head "));
  const std::string head = lines_of(whole.output)[0].substr(20);
  const auto listed = nlohmann::json::parse(site.fedge("audit ls --format json").output);
  REQUIRE(listed.size() == 2);
  CHECK(listed[1]["action"] == "client.revoked");
  CHECK(listed[1]["hash"] == head);
  CHECK(lines_of(site.fedge("audit ls").output).size() == 3);
  const auto file = site.data() + "/audit.log";
  const std::string text = *read_file(file, kLarge);
  std::ofstream(file) << text.substr(0, text.find('\n') + 1);
  CHECK(
      site.fedge("audit verify").output.find("has 1 entries, but entry 2 (recorded in audit.head) is not") !=
      std::string::npos);
  const Outcome cut = site.fedge("audit verify --expect " + head);
  CHECK(cut.code == 1);
  CHECK(cut.output.find("none of its 1 entries has the hash " + head) != std::string::npos);
  std::string changed = text;
  changed.replace(changed.find("tokens 1 to 2"), 13, "tokens 1 to 3");
  std::ofstream(file) << changed;
  const Outcome bad = site.fedge("audit verify");
  CHECK(bad.code == 1);
  CHECK(bad.output == "fedge: " + file + " line 1: its hash does not match its content\n");
  CHECK(site.fedge("audit verify --expect nonsense").code == 2);
}

TEST_CASE("row 2: access: killed at any write, sync or rename, a revocation is recorded if it holds") {
  if (!test::strace_works()) return;
  const AccessSite site;
  site.tokens("");
  std::size_t killed = 0;
  std::size_t recorded_alone = 0;
  for (const char* call : {"write", "pwrite64", "fsync", "fdatasync", "ftruncate"})
    for (int when = 1; when <= 12; ++when) {
      const std::string copy = (site.root.path() / "copy").string();
      std::filesystem::remove_all(copy);
      std::filesystem::copy(site.data(), copy, std::filesystem::copy_options::recursive);
      std::vector<std::string> command = test::strace(call, "signal=KILL:when=" + std::to_string(when));
      command.insert(command.end(), {FEDGE_BINARY_DIR "/fedge", "client", "revoke", "0", "--data-dir", copy});
      const int status = LoggedProcess(command, site.root.path() / "log").wait();
      CAPTURE(std::string(call));
      CAPTURE(when);
      if (status == 0) break;  // it makes fewer such calls
      ++killed;
      const auto book = server::Enrolment(copy).read();
      REQUIRE(book);
      std::size_t entries = 0;
      const auto log = server::AuditLog(copy).verify("", [&](const server::AuditEntry& entry) {
        entries += entry.event.action == "client.revoked" ? 1U : 0U;
      });
      const bool holds = book->tokens[0].revoked;
      CHECK((!holds || entries == 1));
      if (!holds && entries == 1) ++recorded_alone;
      // The next command repairs what was left, or says that nothing was.
      const auto next = test::run("fedge client revoke 0 --data-dir " + copy);
      CHECK_MESSAGE((next.code == 0 || next.output == "fedge: client 0 is already revoked\n"), next.output);
      CHECK(server::AuditLog(copy).verify());
      CHECK(server::Enrolment(copy).read()->tokens[0].revoked);
    }
  CHECK(killed >= 6);
  CHECK(recorded_alone >= 1);
}

TEST_CASE("coordinator config: --check-config judges a file, and options on the command line go before it") {
  const AccessSite site;
  const auto file = site.root.path() / "coordinator.toml";
  std::ofstream(file) << "data_directory = \"" << site.data() << "\"\nlisten = \"127.0.0.1:0\"\n";
  const std::string program = "fedge-coordinator --config " + file.string();
  CHECK(test::run(program + " --check-config").output == file.string() + ": the configuration is valid\n");
  CHECK(test::run(program + " --set run.rounds=3").code == 2);
  CHECK(test::run("fedge-coordinator --run x.toml").output.find("the data directory is missing") !=
        std::string::npos);
  // The key is created before the missing data set is noticed.
  const std::string no_data =
      program + " --run " FEDGE_SOURCE_DIR "/examples/fashion-mlp.toml --set data.directory=/nonexistent";
  const auto other = site.root.path() / "other";
  CHECK(test::run(no_data + " --data-dir " + other.string()).code == 1);
  CHECK(std::filesystem::exists(other / "node.key"));
  CHECK_FALSE(std::filesystem::exists(site.data()));
  CHECK(test::run(no_data).code == 1);
  CHECK(std::filesystem::exists(site.data() + "/node.key"));
  std::ofstream(file, std::ios::app) << "[limits]\nwrong_token_per_minute = 3\n";
  const Outcome wrong = test::run(program + " --check-config");
  CHECK(wrong.code == 1);
  CHECK(wrong.output == "fedge-coordinator: " + file.string() +
                            ":4: unknown key limits.wrong_token_per_minute, did you mean "
                            "limits.wrong_tokens_per_minute?\n");
}

TEST_CASE("coordinator config: --check-config looks at the paths, and names all that are wrong") {
  const TemporaryDirectory place;
  const std::filesystem::path file = place.path() / "coordinator.toml";
  const std::filesystem::path blocked = place.path() / "blocked";
  REQUIRE(write_file_atomic(blocked, "not a directory\n"));
  REQUIRE(write_file_atomic(place.path() / "key.pem", "not a key\n", 0644));
  REQUIRE(write_file_atomic(file, "data_directory = \"" + (blocked / "data").string() +
                                      "\"\n[api]\nlisten = \"127.0.0.1:0\"\ncertificate = \"" +
                                      (place.path() / "cert.pem").string() + "\"\nkey = \"" +
                                      (place.path() / "key.pem").string() + "\"\n"));
  const std::string program = "fedge-coordinator --config " + file.string() + " --check-config";
  const Outcome wrong = test::run(program);
  CHECK(wrong.code == 1);
  CHECK(wrong.output ==
        file.string() + ": data_directory: " + blocked.string() + " is not a directory\n" + file.string() +
            ": " + (place.path() / "key.pem").string() + " can be read by other users; run: chmod 600 " +
            (place.path() / "key.pem").string() + "\nfedge-coordinator: 2 errors in " + file.string() + "\n");
  REQUIRE(::chmod((place.path() / "key.pem").c_str(), 0600) == 0);
  CHECK(test::run(program).output.find("cert.pem is not a certificate in PEM") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(blocked / "data"));
}
