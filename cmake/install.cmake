# `cmake --install` copies the programs, libraries and headers, and a CMake package: find_package(Fedge) then defines
# Fedge::sim, Fedge::coordinator and Fedge::client, the programs as functions (docs/guide/extend.md). The component
# `programs` is the programs and their licence.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(fedge_headers ${CMAKE_INSTALL_INCLUDEDIR}/fedge)
set(fedge_package ${CMAKE_INSTALL_LIBDIR}/cmake/Fedge)

# Makes the include directories of a library apply to the build tree alone; an installed library has one for all.
function(fedge_installed_includes library)
  foreach(property INTERFACE_INCLUDE_DIRECTORIES INTERFACE_SYSTEM_INCLUDE_DIRECTORIES)
    get_target_property(directories ${library} ${property})
    if(directories)
      list(TRANSFORM directories REPLACE "^(.+)$" "$<BUILD_INTERFACE:\\1>")
      set_target_properties(${library} PROPERTIES ${property} "${directories}")
    endif()
  endforeach()
  target_include_directories(${library} INTERFACE $<INSTALL_INTERFACE:${fedge_headers}>)
endfunction()

# Installs what the program prints about itself: completion for three shells, and its manual page.
function(fedge_install_help program)
  if(CMAKE_CROSSCOMPILING)
    return()
  endif()
  set(share ${CMAKE_INSTALL_DATADIR})
  foreach(part "--completion bash|${share}/bash-completion/completions/${program}"
               "--completion zsh|${share}/zsh/site-functions/_${program}"
               "--completion fish|${share}/fish/vendor_completions.d/${program}.fish"
               "--help-man|${CMAKE_INSTALL_MANDIR}/man1/${program}.1")
    string(REGEX REPLACE "\\|.*" "" options "${part}")
    string(REGEX REPLACE ".*\\|" "" file "${part}")
    get_filename_component(directory ${file} DIRECTORY)
    get_filename_component(name ${file} NAME)
    set(written ${PROJECT_BINARY_DIR}/help/${directory}/${name})
    install(CODE "file(MAKE_DIRECTORY \"${PROJECT_BINARY_DIR}/help/${directory}\")
                  execute_process(COMMAND \"$<TARGET_FILE:${program}>\" ${options} OUTPUT_FILE \"${written}\"
                                  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT programs)
    install(FILES ${written} DESTINATION ${directory} COMPONENT programs)
  endforeach()
endfunction()

# Installs the programs and libraries of these rooms, and their headers.
function(fedge_install)
  foreach(room ${ARGN})
    get_property(targets DIRECTORY ${PROJECT_SOURCE_DIR}/${room} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target ${targets})
      get_target_property(type ${target} TYPE)
      if(type STREQUAL "EXECUTABLE")
        install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
        fedge_install_help(${target})
      elseif(type STREQUAL "STATIC_LIBRARY")
        fedge_installed_includes(${target})
        install(TARGETS ${target} EXPORT FedgeTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/fedge
                COMPONENT development)
      endif()
    endforeach()
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${room} DESTINATION ${fedge_headers} COMPONENT development
            FILES_MATCHING PATTERN "*.h")
  endforeach()
  install(EXPORT FedgeTargets NAMESPACE Fedge:: DESTINATION ${fedge_package} COMPONENT development)
  file(WRITE ${PROJECT_BINARY_DIR}/NOTICE "Fedge is licensed under the Apache License 2.0: see LICENSE.\n")
  if(FEDGE_WITH_OPENDHT)
    file(APPEND ${PROJECT_BINARY_DIR}/NOTICE
         "These programs are linked with OpenDHT. In Debian 12, OpenDHT is under the GNU GPL, version 3 or later, so\n"
         "whoever distributes the programs must do so under the terms of the GPL. A build without OpenDHT:\n"
         "cmake --preset release -DFEDGE_WITH_OPENDHT=OFF\n")
  endif()
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_BINARY_DIR}/NOTICE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fedge
          COMPONENT programs)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/FedgeConfig.cmake.in ${PROJECT_BINARY_DIR}/FedgeConfig.cmake
                                INSTALL_DESTINATION ${fedge_package})
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/FedgeConfigVersion.cmake COMPATIBILITY ExactVersion)
  install(FILES ${PROJECT_BINARY_DIR}/FedgeConfig.cmake ${PROJECT_BINARY_DIR}/FedgeConfigVersion.cmake
                ${PROJECT_SOURCE_DIR}/cmake/dependencies.cmake DESTINATION ${fedge_package} COMPONENT development)
endfunction()
