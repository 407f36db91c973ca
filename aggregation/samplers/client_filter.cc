#include "aggregation/samplers/client_filter.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "core/text.h"

namespace fedge::aggregation {
namespace {

constexpr std::size_t kMaxLength = 4096;
constexpr std::size_t kMaxNesting = 64;

}  // namespace

class FilterParser {
 public:
  explicit FilterParser(const std::string& text) : text_(text) {}

  Result<ClientFilter> parse() {
    filter_.text_ = text_;
    FEDGE_TRY_VOID(condition(0));
    if (token_ = next(); !token_.empty()) return wrong("expected 'and', 'or' or the end");
    return std::move(filter_);
  }

 private:
  using Kind = ClientFilter::Step::Kind;

  Error wrong(const std::string& expected) const {
    const std::string found = token_.empty() ? "the end" : std::string(token_);
    return {ErrorCode::kInvalid, expected + " instead of " + found + " at character " +
                                     std::to_string(begin_ + 1) +
                                     "; an example: label == 'ward-3' and not label == 'test'"};
  }

  // Reads a word, an operator, a parenthesis or a quoted string; empty at the end.
  std::string_view next() {
    while (place_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[place_])) != 0) ++place_;
    begin_ = place_;
    if (place_ == text_.size()) return {};
    const char first = text_[place_];
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    std::size_t end = place_ + 1;
    if (is_word(first))
      while (end < text_.size() && is_word(text_[end])) ++end;
    else if (first == '\'')
      end = std::min(text_.find('\'', end), text_.size() - 1) + 1;
    else if ((first == '=' || first == '!') && end < text_.size() && text_[end] == '=')
      ++end;
    place_ = end;
    return std::string_view(text_).substr(begin_, end - begin_);
  }

  // Takes the next token if it is this one.
  bool takes(std::string_view wanted) {
    const std::size_t before = place_;
    if (next() == wanted) return true;
    place_ = before;
    return false;
  }

  void add(Kind kind, std::string label = {}) { filter_.steps_.push_back({kind, std::move(label)}); }

  Result<void> condition(std::size_t nesting) {
    FEDGE_TRY_VOID(term(nesting));
    while (takes("or")) {
      FEDGE_TRY_VOID(term(nesting));
      add(Kind::kOr);
    }
    return {};
  }

  Result<void> term(std::size_t nesting) {
    FEDGE_TRY_VOID(factor(nesting));
    while (takes("and")) {
      FEDGE_TRY_VOID(factor(nesting));
      add(Kind::kAnd);
    }
    return {};
  }

  Result<void> factor(std::size_t nesting) {
    if (nesting > kMaxNesting) return invalid("has more than " + std::to_string(kMaxNesting) + " levels");
    token_ = next();
    if (token_ == "not") {
      FEDGE_TRY_VOID(factor(nesting + 1));
      add(Kind::kNot);
      return {};
    }
    if (token_ == "(") {
      FEDGE_TRY_VOID(condition(nesting + 1));
      if (token_ = next(); token_ != ")") return wrong("expected ')'");
      return {};
    }
    if (token_ != "label") return wrong("expected label, not or '('");
    return comparison();
  }

  Result<void> comparison() {
    token_ = next();
    const bool negated = token_ == "!=";
    if (!negated && token_ != "==") return wrong("expected == or !=");
    token_ = next();
    if (token_.size() < 3 || token_.front() != '\'' || token_.back() != '\'')
      return wrong("expected a label in single quotes");
    const std::string_view label = token_.substr(1, token_.size() - 2);
    FEDGE_TRY_VOID(check_label(label));
    add(Kind::kHas, std::string(label));
    if (negated) add(Kind::kNot);
    return {};
  }

  const std::string& text_;
  std::size_t place_ = 0;
  std::size_t begin_ = 0;  // of token_
  std::string_view token_;
  ClientFilter filter_;
};

Result<ClientFilter> ClientFilter::parse(const std::string& text) {
  if (text.empty()) return ClientFilter();
  if (text.size() > kMaxLength)
    return invalid("is longer than " + std::to_string(kMaxLength) + " characters");
  return FilterParser(text).parse();
}

bool ClientFilter::matches(std::span<const std::string> labels) const {
  if (steps_.empty()) return true;
  std::vector<bool> values;
  for (const Step& step : steps_) {
    if (step.kind == Step::Kind::kHas) {
      values.push_back(std::ranges::find(labels, step.label) != labels.end());
      continue;
    }
    FEDGE_CHECK(values.size() > (step.kind == Step::Kind::kNot ? 0U : 1U), "a parsed condition is complete");
    const bool last = values.back();
    if (step.kind == Step::Kind::kNot) {
      values.back() = !last;
      continue;
    }
    values.pop_back();
    values.back() = step.kind == Step::Kind::kAnd ? values.back() && last : values.back() || last;
  }
  return values.front();
}

}  // namespace fedge::aggregation
