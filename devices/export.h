/// What libtroupe.so exports. Everything is compiled with hidden visibility; what a public header
/// declares between TROUPE_EXPORT_BEGIN and TROUPE_EXPORT_END is exported.
#ifndef TROUPE_DEVICES_EXPORT_H_
#define TROUPE_DEVICES_EXPORT_H_

#if __cplusplus < 202002L
#error "Troupe needs C++20: compile with -std=c++20 or later"
#endif
#ifdef _GLIBCXX_DEBUG
#error "_GLIBCXX_DEBUG changes types that Troupe, Abseil and protobuf take: use _GLIBCXX_ASSERTIONS"
#endif

/// One class, function or variable.
#define TROUPE_EXPORT __attribute__((visibility("default")))
/// What is declared within the two and stays inside; on its first declaration.
#define TROUPE_LOCAL __attribute__((visibility("hidden")))

/// All that is declared in between. Written around the namespace, after the includes.
#define TROUPE_EXPORT_BEGIN _Pragma("GCC visibility push(default)")
#define TROUPE_EXPORT_END _Pragma("GCC visibility pop")

#endif  // TROUPE_DEVICES_EXPORT_H_
