// Admission: how many connections may be open before their Hello, in all and from one address. Above
// the total the oldest gives way, so that strangers who only connect cannot lock others out; above an
// address's share the new one is refused. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

namespace fedge::protocol {

// One household of addresses, for what is counted by address: an IPv4 address, or the /64 of which an IPv6
// host may choose freely ("2001:db8:0:1::"). Anything else stands for itself.
std::string household(const std::string& ip_address);

class Admission : public std::enable_shared_from_this<Admission> {
 public:
  // Holds a place; gives it back when destroyed.
  class Ticket {
   public:
    ~Ticket();
    // What to do when the place is needed for another: close the connection and destroy the ticket.
    void on_evicted(std::function<void()> evict);

   private:
    friend class Admission;
    struct Place {
      std::string address;
      std::function<void()> evict;
    };
    std::shared_ptr<Admission> admission_;
    std::list<Place>::iterator place_;
  };

  Admission(std::size_t max_total, std::size_t max_per_address)
      : max_total_(max_total), max_per_address_(max_per_address) {}

  // Null if the address has its share, or if nobody gives way.
  std::unique_ptr<Ticket> admit(const std::string& address);
  std::size_t total() const { return places_.size(); }

 private:
  void release(std::list<Ticket::Place>::iterator place);

  std::size_t max_total_;
  std::size_t max_per_address_;
  std::list<Ticket::Place> places_;  // oldest first
  std::map<std::string, std::size_t> by_address_;
};

}  // namespace fedge::protocol
