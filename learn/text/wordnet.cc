#include "learn/text/wordnet.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

namespace fedge::learn {
namespace {

constexpr std::array<std::string_view, 45> kLexicographerFiles = {
    "adj.all",          "adj.pert",           "adv.all",
    "noun.Tops",        "noun.act",           "noun.animal",
    "noun.artifact",    "noun.attribute",     "noun.body",
    "noun.cognition",   "noun.communication", "noun.event",
    "noun.feeling",     "noun.food",          "noun.group",
    "noun.location",    "noun.motive",        "noun.object",
    "noun.person",      "noun.phenomenon",    "noun.plant",
    "noun.possession",  "noun.process",       "noun.quantity",
    "noun.relation",    "noun.shape",         "noun.state",
    "noun.substance",   "noun.time",          "verb.body",
    "verb.change",      "verb.cognition",     "verb.communication",
    "verb.competition", "verb.consumption",   "verb.contact",
    "verb.creation",    "verb.emotion",       "verb.motion",
    "verb.perception",  "verb.possession",    "verb.social",
    "verb.stative",     "verb.weather",       "adj.ppl"};

// Markers after an adjective that say where it may stand; they are not part of the word.
constexpr std::array<std::string_view, 3> kAdjectiveMarkers = {"(a)", "(p)", "(ip)"};

// Removes and returns the text up to the next space; nothing if there is none.
std::optional<std::string_view> take_field(std::string_view& rest) {
  const std::size_t space = rest.find(' ');
  if (space == std::string_view::npos || space == 0) return std::nullopt;
  const std::string_view field = rest.substr(0, space);
  rest.remove_prefix(space + 1);
  return field;
}

std::optional<std::size_t> take_number(std::string_view& rest, std::size_t digits, int base) {
  const auto field = take_field(rest);
  if (!field || field->size() != digits) return std::nullopt;
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(field->data(), field->data() + digits, value, base);
  if (error != std::errc() || end != field->data() + digits) return std::nullopt;
  return value;
}

void append_word(std::string& out, std::string_view word) {
  for (const std::string_view marker : kAdjectiveMarkers)
    if (word.ends_with(marker)) word.remove_suffix(marker.size());
  for (const char c : word) out += c == '_' ? ' ' : c;
}

struct Synset {
  std::size_t offset = 0;
  std::size_t lexicographer_file = 0;
  std::string definition;  // ends with a newline
};

// synset_offset lex_filenum ss_type w_cnt word lex_id [word lex_id...] p_cnt ... | gloss
Result<Synset> parse_synset(std::string_view line) {
  std::string_view rest = line;
  const auto offset = take_number(rest, 8, 10);
  const auto file = take_number(rest, 2, 10);
  if (!offset || !file) return invalid("expected an offset of eight digits and a file number of two");
  if (*file >= kLexicographerFiles.size())
    return invalid("lexicographer file " + std::to_string(*file) + " does not exist; there are 45");
  const auto type = take_field(rest);
  if (!type || type->size() != 1 || std::string_view("nvasr").find(*type) == std::string_view::npos)
    return invalid("expected the type of the synset: n, v, a, s or r");
  const auto words = take_number(rest, 2, 16);
  if (!words || *words == 0) return invalid("expected the number of words, two hexadecimal digits");
  Synset synset{*offset, *file, "Define "};
  for (std::size_t i = 0; i < *words; ++i) {
    const auto word = take_field(rest);
    if (!word || !take_number(rest, 1, 16))
      return invalid("expected " + std::to_string(*words) + " words, each with a hexadecimal digit");
    if (i > 0) synset.definition += ", ";
    append_word(synset.definition, *word);
  }
  const std::size_t bar = rest.find(" | ");
  if (bar == std::string_view::npos) return invalid("the gloss after \" | \" is missing");
  std::string_view gloss = rest.substr(bar + 3);
  while (gloss.ends_with(' ')) gloss.remove_suffix(1);
  if (gloss.empty()) return invalid("the gloss is empty");
  synset.definition.append(": ").append(gloss).append("\n");
  return synset;
}

class Loader {
 public:
  explicit Loader(const CorpusPlace& place) : place_(place) {
    for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].name = kLexicographerFiles[i];
  }

  // `category`: noun, verb, adj or adv.
  Result<void> read(const std::string& category) {
    const std::string name = "data." + category;
    FEDGE_TRY(text, read_text(place_, name));
    const auto path = place_.directory / name;
    std::size_t number = 0;
    bool licence = true;  // the indented lines before the first synset
    for (std::size_t at = 0, next = 0; at < text.size(); at = next) {
      ++number;
      const std::size_t end = text.find('\n', at);
      if (end == std::string::npos) return corrupt_line(path, number, "the file is truncated");
      next = end + 1;
      const std::string_view line = std::string_view(text).substr(at, end - at);
      licence = licence && line.starts_with("  ");
      if (licence) continue;
      auto synset = parse_synset(line);
      if (!synset) return corrupt_line(path, number, synset.error().message);
      if (synset->offset != at)
        return corrupt_line(path, number,
                            "the line stands at byte " + std::to_string(at) + " but declares byte " +
                                std::to_string(synset->offset) + ": the file was modified");
      const std::size_t group = synset->lexicographer_file;
      if (!kLexicographerFiles[group].starts_with(category + "."))
        return corrupt_line(path, number, groups_[group].name + " does not belong in this file");
      splits_[group].add(synset->definition, groups_[group]);
    }
    return {};
  }

  std::vector<TextGroup> groups() && {
    std::vector<TextGroup> filled;
    for (TextGroup& group : groups_)
      if (!group.train.empty()) filled.push_back(std::move(group));
    return filled;
  }

 private:
  const CorpusPlace& place_;
  std::array<TextGroup, kLexicographerFiles.size()> groups_;
  std::array<EntrySplit, kLexicographerFiles.size()> splits_;
};

}  // namespace

Result<std::vector<TextGroup>> load_wordnet(const CorpusPlace& place) {
  Loader loader(place);
  for (const char* category : {"noun", "verb", "adj", "adv"}) FEDGE_TRY_VOID(loader.read(category));
  return std::move(loader).groups();
}

}  // namespace fedge::learn
