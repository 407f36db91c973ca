// The main program of every doctest program. It adds to doctest: a test case without assertions fails, and a
// skipped test case (support/skip.h) does not count as passed.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <iostream>

#include "tests/support/skip.h"

namespace {

struct Counts {
  int run = 0;
  int skipped = 0;
  int empty = 0;       // passed without an assertion
  bool skips = false;  // of the running test case
};

Counts counts;

// doctest calls this listener at the start and end of each test case, beside the reporter that prints.
class CountingListener : public doctest::IReporter {
 public:
  explicit CountingListener(const doctest::ContextOptions& /*options*/) {}

  void test_case_start(const doctest::TestCaseData& test) override {
    name_ = test.m_name;
    counts.skips = false;
  }

  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    ++counts.run;
    if (counts.skips) {
      ++counts.skipped;
    } else if (stats.testCaseSuccess && stats.numAssertsCurrentTest == 0) {
      ++counts.empty;
      std::cout << "failed: the test case \"" << name_ << "\" made no assertion\n";
    }
  }

  void report_query(const doctest::QueryData& /*query*/) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& /*stats*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*test*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*assertion*/) override {}
  void log_message(const doctest::MessageData& /*message*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*test*/) override {}

 private:
  const char* name_ = "";
};

}  // namespace

REGISTER_LISTENER("counts", 1, CountingListener);

void fedge::test::skip(const std::string& reason, const std::string& package) {
  counts.skips = true;
  std::cout << "skipped: " << reason;
  if (!package.empty()) std::cout << " (package " << package << ")";
  std::cout << std::endl;
}

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (result != 0 || counts.empty != 0) return result != 0 ? result : EXIT_FAILURE;
  return counts.skipped > 0 && counts.skipped == counts.run ? fedge::test::kSkippedExit : EXIT_SUCCESS;
}
