// Tokens of an identity provider while its keys change, and the users of the book whom they name.
#include "server/access/oidc/token_verifier.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "core/platform/files.h"
#include "server/access_control.h"
#include "tests/support/http/token_signer.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using namespace fedge::server;
using test::SigningKey;

namespace {

constexpr UnixSeconds kTokenNow = 1'800'000'000;
const Actor kAnOperator{"uid 0", ""};

const SigningKey& first_key() {
  static const SigningKey key = SigningKey::p256();
  return key;
}
const SigningKey& second_key() {
  static const SigningKey key = SigningKey::ed25519();
  return key;
}

// A provider with the key "1" at first; the events that the verifier reported.
struct Provider {
  test::TemporaryDirectory directory;
  std::filesystem::path file = directory.path() / "keys.json";
  std::vector<std::string> events;
  std::shared_ptr<TokenVerifier> verifier;

  Provider() {
    publish({first_key().jwk("1")});
    verifier = opened(*this);
  }
  void publish(const std::vector<std::string>& keys) const { write(test::key_set_of(keys)); }
  void write(const std::string& text) const { REQUIRE(write_file_atomic(file, text)); }

  static std::shared_ptr<TokenVerifier> opened(Provider& provider) {
    auto made = TokenVerifier::open({{"https://id.example", "fedge", "sub"}, provider.file},
                                    [&](const Event& event) { provider.events.push_back(to_string(event)); });
    REQUIRE_MESSAGE(made, made.error().message);
    return *made;
  }
  std::string token(const std::string& user, const SigningKey& key = first_key(),
                    UnixSeconds expires = kTokenNow + 600, const std::string& more = "") const {
    const bool first = &key == &first_key();
    return test::token_of(key, first ? "ES256" : "EdDSA",
                          first ? R"({"alg":"ES256","kid":"1"})" : R"({"alg":"EdDSA","kid":"2"})",
                          R"({"iss":"https://id.example","aud":"fedge","iat":)" +
                              std::to_string(kTokenNow - 5) + R"(,"exp":)" + std::to_string(expires) +
                              R"(,"sub":")" + user + "\"" + more + "}");
  }
  std::string verify(const std::string& text, UnixSeconds now = kTokenNow) const {
    const auto user = verifier->verify(text, now);
    return user ? *user : user.error().message;
  }
};

}  // namespace

TEST_CASE("token verifier: a token names its user until it expires, whether it was seen before or not") {
  const Provider provider;
  const std::string token = provider.token("alice");
  CHECK(provider.verify(token) == "alice");
  CHECK(provider.verify(token, kTokenNow + 659) == "alice");
  const std::string expired = "it expired at " + calendar_text(kTokenNow + 600);
  CHECK(provider.verify(token, kTokenNow + 660) == expired);
  CHECK(provider.verify(provider.token("bob"), kTokenNow + 660) == expired);
  // A token that was accepted vouches for no other one.
  CHECK(provider.verify(token + "A") != "alice");
  CHECK(provider.verify(token.substr(0, token.size() - 1)) != "alice");
  CHECK(provider.verify(provider.token("carol")) == "carol");
}

TEST_CASE("token verifier: a changed key set counts at once, also for tokens that were accepted before") {
  Provider provider;
  const std::string former = provider.token("alice");
  const std::string later = provider.token("alice", second_key());
  CHECK(provider.verify(former) == "alice");
  CHECK(provider.verify(later) == "the key set has no key '2'");
  provider.publish({first_key().jwk("1"), second_key().jwk("2")});
  CHECK(provider.verify(former) == "alice");
  CHECK(provider.verify(later) == "alice");
  provider.publish({second_key().jwk("2")});
  CHECK(provider.verify(former) == "the key set has no key '1'");
  CHECK(provider.verify(later) == "alice");
  // Another key under the name of a former one.
  provider.publish({SigningKey::p256().jwk("1"), second_key().jwk("2")});
  CHECK(provider.verify(former) == "its signature is wrong");
  // No keys: no token is valid.
  provider.write(R"({"keys":[]})");
  CHECK(provider.verify(later) == "the key set has no key '2'");
  CHECK(provider.events ==
        std::vector<std::string>{"api.keys_loaded file=\"" + provider.file.string() + "\" keys=1",
                                 "api.keys_loaded file=\"" + provider.file.string() + "\" keys=2",
                                 "api.keys_loaded file=\"" + provider.file.string() + "\" keys=1",
                                 "api.keys_loaded file=\"" + provider.file.string() + "\" keys=2",
                                 "api.keys_loaded file=\"" + provider.file.string() + "\" keys=0"});
}

TEST_CASE("token verifier: a file that is overwritten in place without a new time of change is noticed") {
  Provider provider;
  const std::string a = test::key_set_of({first_key().jwk("1")});
  const std::string b = test::key_set_of({SigningKey::p256().jwk("1")});
  REQUIRE(a.size() == b.size());
  const std::string token = provider.token("alice");
  for (int i = 0; i < 50; ++i) {
    const bool right = i % 2 == 1;
    std::ofstream(provider.file, std::ios::in | std::ios::out) << (right ? a : b);
    CHECK(provider.verify(token) == (right ? "alice" : "its signature is wrong"));
  }
  // Writes into a mapped page that is already dirty change no time of the file. They are noticed for two
  // seconds after its last change; a machine that takes longer than one for this tries again.
  using Clock = std::chrono::steady_clock;
  for (bool in_time = false; !in_time;) {
    const auto begin = Clock::now();
    provider.write(a);
    const int fd = ::open(provider.file.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    void* page = ::mmap(nullptr, a.size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REQUIRE(page != MAP_FAILED);
    std::memcpy(page, a.data(), a.size());
    const std::string before = provider.verify(token);
    std::memcpy(page, b.data(), b.size());
    const std::string after = provider.verify(token);
    ::munmap(page, a.size());
    ::close(fd);
    in_time = Clock::now() - begin < std::chrono::seconds(1);
    CHECK(before == "alice");
    if (in_time) CHECK(after == "its signature is wrong");
  }
}

TEST_CASE("token verifier: a broken key set leaves the former keys in force, and is reported once") {
  Provider provider;
  const std::string token = provider.token("alice");
  provider.events.clear();
  const auto reported = [&](const std::string& reason) {
    for (int i = 0; i < 3; ++i) {
      provider.verifier->refresh();
      CHECK(provider.verify(token) == "alice");
      CHECK(provider.verify(provider.token("bob", second_key())) == "the key set has no key '2'");
    }
    CHECK(provider.events == std::vector<std::string>{"api.keys_refused reason=\"" + reason + "\""});
    provider.events.clear();
  };
  provider.write("{\"keys\":[");
  reported(provider.file.string() + ": it is not JSON, is nested too deep, or has a member twice");
  provider.publish({second_key().jwk("2"), SigningKey::rsa(1024).jwk("3")});
  reported(provider.file.string() +
           ": key 2: the modulus has 1024 bits; use an RSA key of 2048 to 8192 bits");
  provider.write(std::string(kMaxKeySetBytes + 1, ' '));
  for (int i = 0; i < 3; ++i) CHECK(provider.verify(token) == "alice");
  CHECK(provider.events.size() == 1);
  provider.events.clear();
  REQUIRE(std::filesystem::remove(provider.file));
  for (int i = 0; i < 3; ++i) CHECK(provider.verify(token) == "alice");
  REQUIRE(provider.events.size() == 1);
  CHECK(provider.events[0].find("No such file or directory") != std::string::npos);
  provider.events.clear();
  // The same keys once more, and then a right version.
  provider.publish({first_key().jwk("1")});
  CHECK(provider.verify(token) == "alice");
  provider.publish({second_key().jwk("2")});
  CHECK(provider.verify(provider.token("bob", second_key())) == "bob");
  CHECK(provider.events.size() == 2);
}

TEST_CASE("token verifier: several threads check tokens while the keys change") {
  const Provider provider;
  const std::string kept = provider.token("alice");
  const std::string never = provider.token("bob", second_key());
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&](const std::stop_token& stop) {
      for (int turn = 0; turn < 100 || !stop.stop_requested(); ++turn)
        if (provider.verify(kept) != "alice" || provider.verify(never) != "the key set has no key '2'")
          ++wrong;
    });
  for (int i = 0; i < 20; ++i) {
    provider.publish({first_key().jwk("1"), SigningKey::p256().jwk("other")});
    provider.verifier->refresh();
  }
  threads.clear();
  CHECK(wrong == 0);
  CHECK(provider.events.size() == 21);
}

TEST_CASE("token verifier: without a right key set none is opened, and the file is named") {
  const test::TemporaryDirectory directory;
  const auto why = [&](const std::filesystem::path& file) {
    const auto opened = TokenVerifier::open({{"https://id.example", "fedge", "sub"}, file});
    return opened ? "opened" : opened.error().message;
  };
  const auto file = directory.path() / "keys.json";
  CHECK(why(file).find(file.string()) != std::string::npos);
  REQUIRE(write_file_atomic(file, std::string("{}")));
  CHECK(why(file) == file.string() + ": it is not a JSON Web Key Set: an object with the list \"keys\"");
  CHECK(why(directory.path()).find(directory.path().string()) != std::string::npos);
  REQUIRE(write_file_atomic(file, test::key_set_of({first_key().jwk("1")})));
  CHECK(why(file) == "opened");
}

TEST_CASE("token verifier: remembers at most so many tokens, and the forgotten ones still count") {
  const Provider provider;
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < TokenVerifier::kMostRemembered + 20; ++i)
    tokens.push_back(provider.token("user" + std::to_string(i)));
  for (int turn = 0; turn < 2; ++turn)
    for (std::size_t i = 0; i < tokens.size(); ++i)
      REQUIRE(provider.verify(tokens[i]) == "user" + std::to_string(i));
}

TEST_CASE(
    "access control: a token of the identity provider makes its bearer the user of the book, and no other") {
  const Provider provider;
  AccessControl access(provider.directory.path());
  access.trust(provider.verifier);
  const auto who = [&](const std::string& text, UnixSeconds now = kTokenNow) {
    const auto sender = access.authenticate(text, now);
    if (!sender) CHECK(sender.error().code == ErrorCode::kRefused);
    return sender ? sender->actor.name + " " + to_string(sender->grants) : sender.error().message;
  };
  const std::string token = provider.token("alice@hospital.org");
  const std::string unknown =
      "this coordinator has no user 'alice@hospital.org'; an administrator adds one with: fedge user add";
  REQUIRE(access.add_user(kAnOperator, "bob", {{"*", Role::kAdmin}}, kTokenNow));
  CHECK(who(token) == unknown);
  REQUIRE(access.add_project(kAnOperator, "cardiology", kTokenNow));
  REQUIRE(access.add_user(kAnOperator, "alice@hospital.org", {{"cardiology", Role::kSubmitter}}, kTokenNow));
  CHECK(who(token) == "user alice@hospital.org cardiology=submitter");
  // Roles come from the book alone, whatever the token claims.
  CHECK(who(provider.token("alice@hospital.org", first_key(), kTokenNow + 600,
                           R"(,"roles":["admin"],"scope":"admin","grants":"*=admin")")) ==
        "user alice@hospital.org cardiology=submitter");
  REQUIRE(access.set_grants(kAnOperator, "alice@hospital.org", {{"*", Role::kViewer}}));
  CHECK(who(token) == "user alice@hospital.org *=viewer");
  const std::string prefix = "the identity provider's token is not accepted: ";
  CHECK(who(token, kTokenNow + 660) == prefix + "it expired at " + calendar_text(kTokenNow + 600));
  CHECK(who(provider.token("alice", second_key())) == prefix + "the key set has no key '2'");
  CHECK(who(provider.token("Alice@hospital.org")).starts_with(prefix + "its claim sub names no user: "));
  // The prefix of access tokens and the dots decide what a token is.
  const std::string stranger = "this coordinator does not know the access token";
  CHECK(who("fedge_" + token) == stranger);
  CHECK(who(token.substr(0, token.rfind('.'))) == stranger);
  CHECK(who(token + ".e30") == stranger);
  CHECK(who("") == stranger);
  CHECK(who("..") == prefix + "its header is not a JSON object, is nested too deep, or has a member twice");
  const auto own =
      access.create_token(kAnOperator, {.user = "bob", .now = kTokenNow, .lifetime = std::chrono::hours(1)});
  REQUIRE(own);
  CHECK(who(own->secret) == "user bob *=admin");
  // A removed user is refused at once, and another process's change counts, too.
  AccessControl other(provider.directory.path());
  REQUIRE(other.remove_user(kAnOperator, "alice@hospital.org"));
  CHECK(who(token) == unknown);
  // Without a provider it is a wrong token like any other.
  CHECK(other.authenticate(provider.token("bob"), kTokenNow).error().message == stranger);
  access.trust(nullptr);
  CHECK(who(provider.token("bob")) == stranger);
}
