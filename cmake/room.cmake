# Defines the library target fedge_NAME of a room, which is a top-level folder. A room can use only what it links;
# tests/tidy checks its includes as well.
#   fedge_room(learn PUBLIC fedge_core PRIVATE ZLIB::ZLIB)
# EXCEPT names sources that belong to another target.
function(fedge_room name)
  cmake_parse_arguments(ROOM "" "" "PUBLIC;PRIVATE;EXCEPT" ${ARGN})
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(ROOM_EXCEPT)
    list(REMOVE_ITEM sources ${ROOM_EXCEPT})
  endif()
  add_library(fedge_${name} STATIC ${sources})
  target_include_directories(fedge_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(fedge_${name} PUBLIC ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE})
  fedge_warnings(fedge_${name})
  fedge_unity(fedge_${name})
endfunction()

# Defines a library of the messages in .proto files. Its headers are included relative to the folder of the caller:
# "store/journal.pb.h". The target fedge_messages builds all such libraries (used by tests/single_files.py).
#   fedge_message_library(fedge_journal store/journal.proto)
add_custom_target(fedge_messages)
function(fedge_message_library target)
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${generated})
  add_library(${target} STATIC ${ARGN})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
  target_include_directories(${target} SYSTEM PUBLIC ${generated})
  protobuf_generate(TARGET ${target} LANGUAGE cpp IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR} PROTOC_OUT_DIR ${generated})
  add_dependencies(fedge_messages ${target})
endfunction()

# Compiles a target's sources in batches if FEDGE_UNITY is on. Each batch is one translation unit, so the compiler reads
# headers and instantiates templates once a batch. Names in unnamed namespaces must therefore differ within a target
# (checked by tests/tidy), and each source must still compile by itself (checked by tests/single_files.py). CMake
# compiles generated sources, and sources with their own compile options, separately.
#   fedge_unity(TARGET [SOURCES])     SOURCES: maximum number of sources in a batch, 8 by default
function(fedge_unity target)
  if(NOT FEDGE_UNITY)
    return()
  endif()
  set(most 8)
  if(ARGC GREATER 1)
    set(most ${ARGV1})
  endif()
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  math(EXPR batches "(${count} + ${most} - 1) / ${most}")  # of about equal size
  math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
endfunction()

# Limits the number of parallel compilations to the number of processors, and to the available memory: the largest units
# need 1.3 GiB. Ninja's default, two more, costs a fifteenth more processor time. If there is memory for all processors,
# g++ collects garbage less often, which saves a twelfth of the time.
if(NOT DEFINED CMAKE_JOB_POOL_COMPILE)
  cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
  cmake_host_system_information(RESULT memory QUERY TOTAL_PHYSICAL_MEMORY)  # in MiB
  math(EXPR room "${memory} / 1536")
  if(room LESS jobs)
    set(jobs ${room})
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=500000>)
  endif()
  if(jobs LESS 1)
    set(jobs 1)
  endif()
  set_property(GLOBAL APPEND PROPERTY JOB_POOLS fedge_compile=${jobs})
  set(CMAKE_JOB_POOL_COMPILE fedge_compile)
endif()

# Optimises a target in debug builds too, so that the tests of rooms that compute are fast.
function(fedge_optimised_always target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O2>)
endfunction()

# Lowers a target's optimisation level in release builds: -O1 for code that waits for sockets and disks, -Og for code
# that waits for people. Compared with -O3, it compiles in two thirds (-O1) or half (-Og) of the time.
function(fedge_little_optimised target level)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${level}>)
endfunction()

function(fedge_warnings target)
  # g++ 12 gives two false warnings: restrict for "x" + std::string at -O3, and maybe-uninitialized for
  # moves of a std::variant.
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
                         -Wnon-virtual-dtor -Wold-style-cast
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                         # Classes of a source may use types of its unnamed namespace: a batch is one unit.
                         $<$<AND:$<BOOL:${FEDGE_UNITY}>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>
                         # Designated initialisers name only the fields that differ from their defaults.
                         -Wno-missing-field-initializers)
  if(FEDGE_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
