// Hugging Face's tokenizer.json (tokenizers, "Tokenizer::from_file"): what Fedge does not do is refused by
// name, never ignored.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/detail/json.h"
#include "core/text.h"
#include "learn/text/vocabulary/files.h"

namespace fedge::learn {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxComponents = 16;
constexpr std::size_t kMaxUnusedIds = 65'536;

Error broken_json(const std::string& what) { return {ErrorCode::kCorrupt, "not a tokenizer.json: " + what}; }
Error not_supported(const std::string& what) {
  return {ErrorCode::kUnsupported, "the tokenizer uses " + what + ", which is not supported"};
}

// A value of an object, or null.
const Json& value_of(const Json& object, const char* key) {
  static const Json kNothing;
  if (!object.is_object()) return kNothing;
  const auto found = object.find(key);
  return found == object.end() ? kNothing : *found;
}
bool flag_of(const Json& object, const char* key, bool fallback = false) {
  const Json& value = value_of(object, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}
std::string string_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : std::string();
}
std::string type_of(const Json& component) { return string_of(value_of(component, "type")); }

// The components of a sequence, or the one component; nothing for null.
std::vector<Json> components_of(const Json& component, const char* list) {
  if (component.is_null()) return {};
  if (type_of(component) != "Sequence") return {component};
  const Json& all = value_of(component, list);
  if (!all.is_array()) return {};
  return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(all.size(), kMaxComponents))};
}

class TokenizerJson {
 public:
  explicit TokenizerJson(const Json& root) : root_(root), model_(value_of(root, "model")) {}

  Result<Vocabulary> run() {
    if (const std::string type = type_of(model_);
        type != "BPE" && !(type.empty() && model_.contains("merges")))
      return not_supported("the model " + (type.empty() ? "of no type" : type) + " (only BPE is)");
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!string_of(value_of(model_, key)).empty()) return not_supported(key);
    if (!value_of(model_, "dropout").is_null() && value_of(model_, "dropout") != 0.0)
      return not_supported("dropout");
    FEDGE_TRY_VOID(read_normalizer());
    FEDGE_TRY_VOID(read_words());
    FEDGE_TRY_VOID(read_tokens());
    FEDGE_TRY_VOID(read_merges());
    read_begin();
    made_.whole_words = flag_of(model_, "ignore_merges");
    if (made_.characters && !metaspace_)
      made_.splitter = spans_words(made_) ? Splitter::kWhole : Splitter::kSpaces;
    if (const auto sound = check_vocabulary(made_); !sound) return broken_json(sound.error().message);
    return std::move(made_);
  }

 private:
  // Llama 2 puts U+2581 before the text and in place of each space; byte-level tokenizers have no normalizer.
  Result<void> read_normalizer() {
    for (const Json& part : components_of(value_of(root_, "normalizer"), "normalizers")) {
      const std::string type = type_of(part);
      if (type == "Prepend" && string_of(value_of(part, "prepend")) == "\xe2\x96\x81") {
        made_.leading_space = true;
      } else if (type == "Replace" && string_of(value_of(value_of(part, "pattern"), "String")) == " " &&
                 string_of(value_of(part, "content")) == "\xe2\x96\x81") {
        made_.characters = true;
      } else {
        return not_supported("the normalizer " + clean_text(type, 40));
      }
    }
    return {};
  }

  Result<void> read_words() {
    bool words = false;   // whether a component has divided the text by a known expression
    bool digits = false;  // or has separated digits
    bool bytes = false;
    for (const Json& part : components_of(value_of(root_, "pre_tokenizer"), "pretokenizers")) {
      const std::string type = type_of(part);
      if (type == "ByteLevel") {
        if (flag_of(part, "add_prefix_space", true)) return not_supported("ByteLevel with add_prefix_space");
        bytes = true;
        if (flag_of(part, "use_regex", true)) {
          if (words) return not_supported("two expressions for words");
          made_.splitter = digits ? Splitter::kDigits : Splitter::kGpt2;
          words = true;
        }
      } else if (type == "Digits" && flag_of(part, "individual_digits") && !words) {
        digits = true;
      } else if (type == "Split" && !words && !digits) {
        FEDGE_TRY_VOID(read_expression(part));
        words = true;
      } else if (type == "Metaspace" && !words && !digits) {
        FEDGE_TRY_VOID(read_metaspace(part));
      } else {
        return not_supported("the pre-tokenizer " + clean_text(type, 40) + " in this place");
      }
    }
    if (bytes && made_.characters) return not_supported("bytes and characters together");
    if (!bytes && !made_.characters) return not_supported("neither bytes nor U+2581 for spaces");
    if (bytes && !words) return not_supported("bytes without an expression for words");
    return {};
  }

  Result<void> read_expression(const Json& part) {
    const std::string expression = string_of(value_of(value_of(part, "pattern"), "Regex"));
    if (string_of(value_of(part, "behavior")) != "Isolated" || flag_of(part, "invert"))
      return not_supported("a Split that removes or merges what it finds");
    if (expression == kLlama3Words)
      made_.splitter = Splitter::kLlama3;
    else if (expression == kQwen2Words)
      made_.splitter = Splitter::kQwen2;
    else
      return not_supported("the unknown expression for words " + json_text(expression.substr(0, 60)));
    return {};
  }

  Result<void> read_metaspace(const Json& part) {
    if (string_of(value_of(part, "replacement")) != "\xe2\x96\x81")
      return not_supported("a Metaspace with another character than U+2581");
    const std::string scheme = string_of(value_of(part, "prepend_scheme"));
    made_.characters = true;
    made_.leading_space =
        scheme.empty() ? flag_of(part, "add_prefix_space", true) : scheme == "first" || scheme == "always";
    metaspace_ = flag_of(part, "split", true);
    made_.splitter = metaspace_ ? Splitter::kSpaces : Splitter::kWhole;
    return {};
  }

  Result<void> read_tokens() {
    const Json& vocabulary = value_of(model_, "vocab");
    const Json& added = value_of(root_, "added_tokens");
    if (!vocabulary.is_object()) return broken_json("model.vocab is no object");
    const std::size_t tokens = vocabulary.size() + added.size();
    if (tokens > kMaxTokens) return broken_json("it has too many tokens");
    const std::size_t most = std::min(kMaxTokens, tokens + kMaxUnusedIds);
    std::vector<const std::string*> texts;
    std::vector<bool> control;
    const auto place = [&](const std::string& text, const Json& id) {
      if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= most) return false;
      const auto at = id.get<std::size_t>();
      if (texts.size() <= at) {
        texts.resize(at + 1);
        control.resize(at + 1);
      }
      if (texts[at] != nullptr && *texts[at] != text) return false;
      texts[at] = &text;
      return true;
    };
    for (const auto& item : vocabulary.items())
      if (!place(item.key(), item.value()))
        return broken_json("token " + shown(item.key()) + " has a wrong id");
    for (const Json& token : added) {
      const Json& content = value_of(token, "content");
      if (!content.is_string() || !place(content.get_ref<const std::string&>(), value_of(token, "id")))
        return broken_json("an added token has a wrong id");
      control[value_of(token, "id").get<std::size_t>()] = true;
    }
    for (std::size_t i = 0; i < texts.size(); ++i) FEDGE_TRY_VOID(add_token(texts[i], control[i]));
    if (const std::string unknown = string_of(value_of(model_, "unk_token")); !unknown.empty())
      made_.unknown = find(unknown);
    return {};
  }

  Result<void> add_token(const std::string* text, bool control) {
    const auto id = static_cast<Token>(made_.tokens.size());
    if (text == nullptr || control) {  // ids without a token are never used
      if (text != nullptr) numbers_.emplace(*text, id);
      made_.add(text == nullptr ? "" : text->substr(0, kMaxTokenBytes), TokenKind::kControl);
      return {};
    }
    numbers_.emplace(*text, id);
    if (!made_.characters) {
      auto bytes = bytes_of_spelling(*text);
      if (!bytes) return broken_json("token " + shown(*text) + " is not in the spelling of bytes");
      made_.add(std::move(*bytes), TokenKind::kText);
      return {};
    }
    const Vocabulary one = sentencepiece_vocabulary(
        {{.text = *text,
          .kind = flag_of(model_, "byte_fallback") && text->size() == 6 && text->starts_with("<0x")
                      ? TokenKind::kByte
                      : TokenKind::kText}},
        false);
    made_.add(one.tokens[0], one.kinds[0]);
    return {};
  }

  // A merge is "left right" or ["left", "right"]; what it makes is the token spelled by both.
  Result<void> read_merges() {
    const Json& merges = value_of(model_, "merges");
    if (!merges.is_array() || merges.size() > kMaxMerges) return broken_json("model.merges is no list");
    for (const Json& merge : merges) {
      std::string left;
      std::string right;
      if (merge.is_array() && merge.size() == 2) {
        left = string_of(merge[0]);
        right = string_of(merge[1]);
      } else {
        const std::string both = string_of(merge);
        const std::size_t space = std::min(both.find(' '), both.size());
        left = both.substr(0, space);
        right = both.substr(std::min(space + 1, both.size()));
      }
      const auto a = find(left);
      const auto b = find(right);
      const auto made = find(left + right);
      if (!a || !b || !made)
        return broken_json("the merge of " + shown(left) + " and " + shown(right) +
                           " names what is no token");
      made_.merges.push_back({*a, *b, *made, static_cast<std::uint32_t>(made_.merges.size())});
    }
    return {};
  }

  // The first token that the template of a single text puts before it.
  void read_begin() {
    for (const Json& part : components_of(value_of(root_, "post_processor"), "processors")) {
      const Json& single = value_of(part, "single");
      if (type_of(part) != "TemplateProcessing" || !single.is_array() || single.empty()) continue;
      const std::string name = string_of(value_of(value_of(single[0], "SpecialToken"), "id"));
      if (!name.empty()) made_.begin = find(name);
    }
  }

  std::optional<Token> find(const std::string& text) const {
    const auto found = numbers_.find(text);
    if (found == numbers_.end()) return std::nullopt;
    return found->second;
  }
  static std::string shown(const std::string& text) { return json_text(text.substr(0, 40)); }

  const Json& root_;
  const Json& model_;
  Vocabulary made_;
  bool metaspace_ = false;
  std::unordered_map<std::string, Token> numbers_;  // never iterated
};

}  // namespace

Result<Vocabulary> parse_tokenizer_json(std::string_view text) {
  const Json root = parse_json(text);
  if (!root.is_object()) return broken_json("it is not a JSON object, or nested too deeply");
  return TokenizerJson(root).run();
}

}  // namespace fedge::learn
