// What every link's socket is set to. Private to session/.
#pragma once

#include <boost/asio/ip/tcp.hpp>

namespace fedge::protocol {

void set_socket_options(boost::asio::ip::tcp::socket& socket);

}  // namespace fedge::protocol
