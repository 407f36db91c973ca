// Options for every link's socket, and its peer's address. Private to session/.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include "protocol/session/endpoint.h"

namespace fedge::protocol {

inline Address address_of(const boost::asio::ip::tcp::endpoint& endpoint) {
  return {endpoint.address().to_string(), endpoint.port()};
}

void set_socket_options(boost::asio::ip::tcp::socket& socket);

}  // namespace fedge::protocol
