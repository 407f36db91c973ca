#include "learn/text/rouge.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/rng.h"

using namespace fedge;
using namespace fedge::learn;

namespace {

// By definition: the longest subsequence of a that b has as well.
std::size_t slow_lcs(const std::string& a, const std::string& b) {
  std::size_t longest = 0;
  for (unsigned chosen = 0; chosen < 1U << a.size(); ++chosen) {
    std::size_t taken = 0;
    std::size_t at = 0;
    bool found = true;
    for (std::size_t i = 0; i < a.size() && found; ++i) {
      if ((chosen >> i & 1U) == 0) continue;
      at = b.find(a[i], at);
      found = at++ != std::string::npos;
      ++taken;
    }
    if (found) longest = std::max(longest, taken);
  }
  return longest;
}

std::string as_words(const std::string& letters) {
  std::string text;
  for (const char c : letters) text += std::string(1, c) + " ";
  return text;
}

void check_score(const RougeScore& score, double recall, double precision, double f) {
  CHECK(score.recall == doctest::Approx(recall));
  CHECK(score.precision == doctest::Approx(precision));
  CHECK(score.f == doctest::Approx(f));
}

}  // namespace

TEST_CASE("rouge: the examples of Lin 2004 score 3/4, 2/4 and 2/4") {
  const char* reference = "police killed the gunman";
  check_score(rouge_l("police kill the gunman", reference), 0.75, 0.75, 0.75);
  check_score(rouge_l("the gunman kill police", reference), 0.5, 0.5, 0.5);
  check_score(rouge_l("the gunman police killed", reference), 0.5, 0.5, 0.5);
}

TEST_CASE("rouge: recall, precision and F of texts of unequal length are those by hand") {
  // LCS "a domesticated animal" = 3 of 6 reference words and of 4 answered words: F = 2 * 0.5 * 0.75 / 1.25.
  check_score(rouge_l("a domesticated furry animal", "a small domesticated animal with fur"), 0.5, 0.75, 0.6);
  check_score(rouge_l("one", "one two three four"), 0.25, 1, 0.4);
}

TEST_CASE("rouge: case and the amount of whitespace do not count, punctuation does") {
  check_score(rouge_l("  The\tDOG\n\nbarks ", "the dog BARKS"), 1, 1, 1);
  check_score(rouge_l("dog.", "dog"), 0, 0, 0);
}

TEST_CASE("rouge: no words score nothing, also compared with none") {
  check_score(rouge_l("", ""), 0, 0, 0);
  check_score(rouge_l(" \n", "dog"), 0, 0, 0);
  check_score(rouge_l("dog", ""), 0, 0, 0);
  check_score(rouge_l("cat", "dog"), 0, 0, 0);
}

TEST_CASE("rouge: the longest common subsequence is that of trying all subsequences") {
  Rng rng = Rng(31).fork("rouge");
  for (int round = 0; round < 200; ++round) {
    std::string a(1 + rng.below(10), ' ');
    std::string b(1 + rng.below(10), ' ');
    for (char& c : a) c = static_cast<char>('a' + rng.below(4));
    for (char& c : b) c = static_cast<char>('a' + rng.below(4));
    const auto common = static_cast<double>(slow_lcs(a, b));
    const RougeScore score = rouge_l(as_words(a), as_words(b));
    REQUIRE(score.recall * static_cast<double>(b.size()) == doctest::Approx(common));
    REQUIRE(score.precision * static_cast<double>(a.size()) == doctest::Approx(common));
  }
}
