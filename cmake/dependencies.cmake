# Finds third-party packages in the form in which Debian 12 ships them. packages.txt lists the apt packages.
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)            # headers only: Asio
find_package(OpenSSL 3.0 REQUIRED)
find_package(Protobuf REQUIRED)              # module mode: Debian ships no protobuf-config.cmake
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(ZLIB REQUIRED)
find_package(SQLite3 3.37 REQUIRED)         # SQLite::SQLite3
find_package(Eigen3 3.4 REQUIRED NO_MODULE)  # Eigen3::Eigen, headers only
find_package(zstd REQUIRED)                 # zstd::libzstd_shared
find_package(PkgConfig REQUIRED)
pkg_check_modules(libzip REQUIRED IMPORTED_TARGET libzip)  # its CMake file needs programs of other packages
pkg_check_modules(png REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(turbojpeg REQUIRED IMPORTED_TARGET libturbojpeg)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
if(FEDGE_WITH_OPENDHT)
  # find_package(opendht) is broken in Debian 12: its file refers to a target that it does not define.
  pkg_check_modules(opendht REQUIRED IMPORTED_TARGET opendht)
endif()
if(FEDGE_WITH_MPI)
  if(FEDGE_WITH_MPI STREQUAL "AUTO")
    find_package(MPI QUIET COMPONENTS C)
  else()
    find_package(MPI REQUIRED COMPONENTS C)
  endif()
  set(FEDGE_WITH_MPI ${MPI_C_FOUND})
endif()
