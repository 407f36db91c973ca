#include "protocol/session/admission.h"

#include <utility>

namespace fedge::protocol {

Admission::Ticket::~Ticket() { admission_->release(place_); }

void Admission::Ticket::on_evicted(std::function<void()> evict) { place_->evict = std::move(evict); }

std::unique_ptr<Admission::Ticket> Admission::admit(const std::string& address) {
  if (const auto known = by_address_.find(address);
      known != by_address_.end() && known->second >= max_per_address_)
    return nullptr;
  if (places_.size() >= max_total_ && !places_.empty()) {
    // A copy: carrying it out destroys the place.
    if (const auto evict = places_.front().evict) evict();
  }
  if (places_.size() >= max_total_) return nullptr;
  auto ticket = std::make_unique<Ticket>();
  ticket->admission_ = shared_from_this();
  ticket->place_ = places_.insert(places_.end(), {address, nullptr});
  ++by_address_[address];
  return ticket;
}

void Admission::release(std::list<Ticket::Place>::iterator place) {
  const auto count = by_address_.find(place->address);
  if (--count->second == 0) by_address_.erase(count);
  places_.erase(place);
}

}  // namespace fedge::protocol
