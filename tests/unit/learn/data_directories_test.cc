#include "learn/data/data_directories.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/tiny_dataset.h"

namespace fedge::learn {

TEST_CASE("data directories: one for a data set, one for all others, and what is wrong is named") {
  const test::TemporaryDirectory mine, others;
  const std::string path = mine.path().string();
  const auto read = read_data_directories(std::vector<std::string>{"text=" + path, others.path().string()});
  REQUIRE(read);
  const auto chosen = [&](const DataDirectories& directories, const std::string& name) {
    DataSpec data;
    data.dataset = name;
    data.directory = "/of/the/run";
    const auto done = choose_directory(directories, data);
    return done ? data.directory : done.error().message;
  };
  CHECK(chosen(*read, "text") == path);
  CHECK(chosen(*read, "wordnet") == others.path().string());
  CHECK(chosen(*read, "fashion-mnist") == others.path().string());
  CHECK(chosen({{"text", path}}, "fortunes").empty());
  CHECK(chosen({{"wordnet", path}}, "fashion-mnist") == "/of/the/run");
  CHECK(chosen({{"wordnet", path}}, "text").find("--data text=DIR") != std::string::npos);
  const auto message = [](const std::vector<std::string>& texts) {
    const auto made = read_data_directories(texts);
    return made ? std::string("read") : made.error().message;
  };
  CHECK(message({"/nowhere"}) == "/nowhere does not exist");
  CHECK(message({"text=/nowhere"}) == "/nowhere does not exist");
  CHECK(message({"a/b=" + path}) == "a/b=" + path + " does not exist");
  mine.write("file", {});
  CHECK(message({"heart=" + path + "/file"}) == "read");
  CHECK(message({path + "/file"}) ==
        path + "/file is not a directory; a file needs the name of its data: NAME=" + path + "/file");
  CHECK(message({path, others.path().string()}) ==
        others.path().string() + " is a second path for all data sets; give only one");
  CHECK(message({"text=" + path, "text=" + path}) == path + " is a second path for text; give only one");
}

}  // namespace fedge::learn
