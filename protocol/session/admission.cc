#include "protocol/session/admission.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <utility>

namespace fedge::protocol {

std::string household(const std::string& ip_address) {
  namespace ip = boost::asio::ip;
  boost::system::error_code error;
  const ip::address address = ip::make_address(ip_address, error);
  if (error || address.is_v4()) return error ? ip_address : address.to_string();
  if (address.to_v6().is_v4_mapped()) return ip::make_address_v4(ip::v4_mapped, address.to_v6()).to_string();
  auto bytes = address.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
  return ip::make_address_v6(bytes).to_string();
}

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
