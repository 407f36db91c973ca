#include "protocol/session/admission.h"

#include <doctest/doctest.h>

#include <vector>

using namespace fedge::protocol;

TEST_CASE("A6 row 55: admission: an address gets its share and no more, others are not affected") {
  const auto admission = std::make_shared<Admission>(10, 2);
  auto first = admission->admit("a");
  const auto second = admission->admit("a");
  CHECK(first);
  CHECK(second);
  CHECK_FALSE(admission->admit("a"));
  CHECK(admission->admit("b"));
  first->let_in();
  first.reset();
  CHECK(admission->admit("a"));
}

TEST_CASE("A6 row 55: admission: one who was not let in keeps its place until the second forgiveness") {
  const auto admission = std::make_shared<Admission>(10, 2);
  for (int i = 0; i < 2; ++i) REQUIRE(admission->admit("a"));  // each disconnects at once
  CHECK(admission->total() == 2);
  CHECK_FALSE(admission->admit("a"));
  admission->forgive();
  CHECK_FALSE(admission->admit("a"));
  auto other = admission->admit("b");
  admission->forgive();
  CHECK(admission->total() == 1);
  CHECK(admission->admit("a"));
  other->let_in();
  other.reset();
  admission->forgive();
  admission->forgive();
  CHECK(admission->total() == 0);
}

TEST_CASE("A6 row 55: admission: those who are gone give way before those who are there") {
  const auto admission = std::make_shared<Admission>(2, 2);
  auto there = admission->admit("there");
  bool evicted = false;
  there->on_evicted([&] { evicted = true; });
  REQUIRE(admission->admit("gone"));
  for (int i = 0; i < 5; ++i) CHECK(admission->admit("stranger " + std::to_string(i)));
  CHECK_FALSE(evicted);
  CHECK(admission->total() == 2);
}

TEST_CASE("A6 row 55: admission: above the total the oldest gives way") {
  const auto admission = std::make_shared<Admission>(3, 3);
  std::vector<std::unique_ptr<Admission::Ticket>> tickets(4);
  for (std::size_t i = 0; i < 3; ++i) {
    tickets[i] = admission->admit(std::to_string(i));
    tickets[i]->on_evicted([&tickets, i] { tickets[i].reset(); });
  }
  tickets[3] = admission->admit("new");
  CHECK(tickets[3]);
  CHECK_FALSE(tickets[0]);
  CHECK(tickets[1]);
  CHECK(admission->total() == 3);
}

TEST_CASE("admission: nobody is let in over the total if the oldest stays") {
  const auto admission = std::make_shared<Admission>(1, 1);
  const auto stays = admission->admit("a");
  CHECK_FALSE(admission->admit("b"));
}

TEST_CASE("admission: a ticket may outlive the listener") {
  auto admission = std::make_shared<Admission>(1, 1);
  const std::weak_ptr<Admission> known = admission;
  auto ticket = admission->admit("a");
  REQUIRE(ticket);
  admission.reset();
  ticket.reset();
  CHECK(known.expired());  // the last of the two owners destroyed it
}
