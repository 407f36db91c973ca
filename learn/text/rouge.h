// ROUGE-L (Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries", section 3.1): how much of a
// reference's words a text has in the same order, by their longest common subsequence (LCS).
// Words are what whitespace separates; ASCII letters count the same in both cases, punctuation stays with
// its word, and there is no stemming. Pure; time is the product of the numbers of words, memory the lesser.
#pragma once

#include <string_view>

namespace fedge::learn {

struct RougeScore {
  double recall = 0;     // R = LCS / words of the reference
  double precision = 0;  // P = LCS / words of the hypothesis
  double f = 0;          // (1 + beta^2) R P / (R + beta^2 P) with beta = 1
};

// All 0 if either has no word, also if neither has.
RougeScore rouge_l(std::string_view hypothesis, std::string_view reference);

}  // namespace fedge::learn
