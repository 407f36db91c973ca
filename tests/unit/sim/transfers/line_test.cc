#include "sim/transfers/line.h"

#include <doctest/doctest.h>

using namespace fedge;
using sim::ByteCount;
using sim::Line;

namespace {

Time at(double time) { return Time(seconds(time)); }

}  // namespace

TEST_CASE("line: what is sent waits for what was sent before") {
  Line line;
  CHECK(line.send(at(1), seconds(2)) == at(3));
  const Line::Transfer transfer = line.begin(at(2), Bytes(100), seconds(10));
  CHECK(transfer.begin == at(3));
  CHECK(transfer.end == at(13));
  CHECK(line.send(at(20), seconds(1)) == at(21));
  line.cut(at(20.5));
  CHECK(line.free() == at(20.5));
}

TEST_CASE("line: a transfer that ends early frees the line, unless something was sent after it") {
  Line line;
  const Line::Transfer first = line.begin(at(0), Bytes(100), seconds(10));
  CHECK(first.passed(at(-1)) == Bytes(0));
  CHECK(first.passed(at(2.5)) == Bytes(25));
  CHECK(first.passed(at(11)) == Bytes(100));
  line.end(first, at(2.5));
  CHECK(line.free() == at(2.5));

  const Line::Transfer second = line.begin(at(3), Bytes(100), seconds(10));
  line.send(at(4), seconds(1));
  line.end(second, at(5));
  CHECK(line.free() == at(14));

  // A transfer that has not begun takes no time.
  const Line::Transfer third = line.begin(at(4), Bytes(100), seconds(10));
  line.end(third, at(5));
  CHECK(line.free() == at(14));
}

TEST_CASE("line: bytes that are removed after they were taken are missing from what comes next") {
  ByteCount count;
  count.add(Bytes(100));
  CHECK(count.take() == Bytes(100));
  count.remove(Bytes(30));
  count.add(Bytes(10));
  CHECK(count.take() == Bytes(0));
  count.add(Bytes(50));
  CHECK(count.take() == Bytes(30));
}
