// Test cases for the tests of support/main.cc; each has a different outcome. CTest runs them one by one and
// checks the program's exit (tests/CMakeLists.txt).
#include <doctest/doctest.h>

#include "tests/support/skip.h"

TEST_CASE("passes") { CHECK(1 + 1 == 2); }
TEST_CASE("fails") { CHECK(1 + 1 == 3); }
TEST_CASE("asserts nothing") {}
TEST_CASE("is skipped") { fedge::test::skip("nothing to test it with", "no-such-package"); }
TEST_CASE("fails before it is skipped") {
  CHECK(1 + 1 == 3);
  fedge::test::skip("nothing to test the rest with");
}
