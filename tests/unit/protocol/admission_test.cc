#include "protocol/session/admission.h"

#include <doctest/doctest.h>

#include <vector>

using namespace fedge::protocol;

TEST_CASE("admission: an address gets its share and no more, others are not affected") {
  const auto admission = std::make_shared<Admission>(10, 2);
  auto first = admission->admit("a");
  const auto second = admission->admit("a");
  CHECK(first);
  CHECK(second);
  CHECK_FALSE(admission->admit("a"));
  CHECK(admission->admit("b"));
  first.reset();
  CHECK(admission->admit("a"));
  CHECK(admission->total() == 1);
}

TEST_CASE("admission: above the total the oldest gives way") {
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
  auto ticket = admission->admit("a");
  admission.reset();
  ticket.reset();
}
