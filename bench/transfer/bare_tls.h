// The bare copy that transfers are compared with: boost::asio::ssl::stream as its documentation uses it. TLS
// 1.3 with the cipher of Fedge's links, memory to memory, nothing checked.
#pragma once

#include <utility>  // Boost 1.74 uses std::exchange without it

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <cstddef>
#include <functional>
#include <span>

namespace fedge::bench {

using TlsSocket = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

// A server's context has a certificate created here; a client's verifies nothing.
boost::asio::ssl::context bare_context(bool server);
// Write or read all the bytes in pieces of one chunk, then call done; an error ends the program.
void write_all(TlsSocket& stream, std::span<const std::byte> bytes, std::function<void()> done);
void read_all(TlsSocket& stream, std::span<std::byte> bytes, std::function<void()> done);

[[noreturn]] void give_up(const char* what);

}  // namespace fedge::bench
