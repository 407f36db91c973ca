#include "server/enrolment.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "core/platform/files.h"

using namespace fedge;
using fedge::server::Enrolment;

namespace {

constexpr std::chrono::hours kDay{24};

struct Book {
  std::filesystem::path directory;
  Book() {
    std::string name = (std::filesystem::temp_directory_path() / "fedge-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    directory = name;
  }
  ~Book() { std::filesystem::remove_all(directory); }
  Enrolment open() const { return Enrolment(directory); }
};

PublicKey key(std::uint8_t byte) {
  PublicKey result;
  result.bytes.fill(byte);
  return result;
}

std::string reason(const Result<ClientId>& result) { return result ? "accepted" : result.error().message; }

}  // namespace

TEST_CASE("enrolment: a token makes a key a client, once, numbers count from 0") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto first = enrolment.create_token(1000, kDay);
  const auto second = enrolment.create_token(1000, kDay);
  REQUIRE(first);
  REQUIRE(second);
  CHECK(second->client == ClientId(1));
  CHECK(*enrolment.redeem(second->secret, key(1), 1001) == ClientId(1));
  CHECK(*enrolment.authenticate(key(1)) == ClientId(1));
  CHECK(reason(enrolment.redeem(second->secret, key(2), 1002)) ==
        "the join token has already been used; ask for a new one");
  CHECK(*enrolment.redeem(second->secret, key(1), 1003) == ClientId(1));  // its first answer was lost
  CHECK(*enrolment.redeem(first->secret, key(3), 1004) == ClientId(0));
}

TEST_CASE("enrolment: wrong, expired and revoked tokens and unknown and revoked keys are refused") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto token = enrolment.create_token(1000, std::chrono::seconds(10));
  CHECK(reason(enrolment.redeem("nonsense", key(1), 1001)) == "the join token is not known here");
  CHECK(reason(enrolment.redeem(token->secret, key(1), 1011)) ==
        "the join token has expired; ask for a new one");
  CHECK(reason(enrolment.authenticate(key(1))) ==
        "this client is not enrolled here; join with a token first");
  REQUIRE(enrolment.redeem(token->secret, key(1), 1005));
  CHECK(enrolment.revoke(ClientId(0)));
  CHECK(reason(enrolment.authenticate(key(1))) == "this client's key has been revoked");
  CHECK(enrolment.authenticate(key(1)).error().code == ErrorCode::kRefused);
  CHECK(reason(enrolment.redeem(token->secret, key(1), 1005)) == "the join token has been revoked");
  const auto other = enrolment.create_token(1000, kDay);
  CHECK(reason(enrolment.redeem(other->secret, key(1), 1005)) == "this client's key has been revoked");
  CHECK(enrolment.revoke(ClientId(99)).error().code == ErrorCode::kNotFound);
}

TEST_CASE("enrolment: the book holds no secret and nobody else may read it") {
  const Book book;
  Enrolment enrolment = book.open();
  const auto token = enrolment.create_token(1000, kDay);
  const auto text = read_file(book.directory / "enrolment.json", 1 << 20);
  REQUIRE(text);
  CHECK(text->find(token->secret) == std::string::npos);
  struct stat info {};
  REQUIRE(::stat((book.directory / "enrolment.json").c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("enrolment: changes from several threads at once are all kept") {
  const Book book;
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i)
    writers.emplace_back([&] {
      Enrolment mine = book.open();
      for (int j = 0; j < 10; ++j) CHECK(mine.create_token(1000, kDay));
    });
  for (std::thread& writer : writers) writer.join();
  const auto read = book.open().read();
  REQUIRE(read);
  REQUIRE(read->tokens.size() == 40);
  for (std::uint32_t i = 0; i < 40; ++i) CHECK(read->tokens[i].client == ClientId(i));
}

TEST_CASE("enrolment: a damaged book is named, not overwritten") {
  const Book book;
  std::ofstream(book.directory / "enrolment.json") << "{\"tokens\": [{}], \"clients\": []}";
  Enrolment enrolment = book.open();
  const auto token = enrolment.create_token(1000, kDay);
  REQUIRE(!token);
  CHECK(token.error().code == ErrorCode::kCorrupt);
  CHECK(token.error().message.find("enrolment.json is damaged") != std::string::npos);
  CHECK(read_file(book.directory / "enrolment.json", 100)->find("{}") != std::string::npos);
}
