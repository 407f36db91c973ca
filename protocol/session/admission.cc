#include "protocol/session/admission.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <utility>

namespace fedge::protocol {

Admission::Ticket::~Ticket() { admission_->release(place_, let_in_); }

void Admission::Ticket::on_evicted(std::function<void()> evict) { place_->evict = std::move(evict); }

std::unique_ptr<Admission::Ticket> Admission::admit(const std::string& address) {
  if (const auto known = by_address_.find(address);
      known != by_address_.end() && known->second >= max_per_address_)
    return nullptr;
  make_room();
  if (total() >= max_total_) return nullptr;
  auto ticket = std::make_unique<Ticket>();
  ticket->admission_ = shared_from_this();
  ticket->place_ = places_.insert(places_.end(), {address, nullptr});
  ++by_address_[address];
  return ticket;
}

// Frees a refused place if there is one, else evicts the oldest open one.
void Admission::make_room() {
  if (total() >= max_total_ && refused_.empty() && !places_.empty()) {
    // A copy, because evict() destroys the place.
    if (const auto evict = places_.front().evict) evict();
  }
  if (total() >= max_total_ && !refused_.empty()) forget_oldest();
}

void Admission::forgive() {
  while (due_ > 0) forget_oldest();
  due_ = refused_.size();
}

void Admission::forget_oldest() {
  forget(refused_.front());
  refused_.pop_front();
  if (due_ > 0) --due_;
}

void Admission::release(std::list<Ticket::Place>::iterator place, bool let_in) {
  if (let_in)
    forget(place->address);
  else
    refused_.push_back(std::move(place->address));
  places_.erase(place);
}

void Admission::forget(const std::string& address) {
  const auto count = by_address_.find(address);
  if (--count->second == 0) by_address_.erase(count);
}

}  // namespace fedge::protocol
