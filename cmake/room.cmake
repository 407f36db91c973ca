# A room is a top-level folder: one library target fedge_<room> with its own link line. What a room
# does not link it cannot use; tests/tidy checks the includes as well.
#   fedge_room(learn PUBLIC fedge_core PRIVATE ZLIB::ZLIB)
function(fedge_room name)
  cmake_parse_arguments(ROOM "" "" "PUBLIC;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(fedge_${name} STATIC ${sources})
  target_include_directories(fedge_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(fedge_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE})
  fedge_warnings(fedge_${name})
endfunction()

function(fedge_warnings target)
  # Two that g++ 12 gives wrongly: restrict on "x" + std::string at -O3, maybe-uninitialized on
  # moves of a std::variant.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                         -Wnon-virtual-dtor -Wold-style-cast
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         # Designated initialisers name what differs from the defaults.
                         -Wno-missing-field-initializers)
  if(FEDGE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
