/// The secrets by which the tasks of a cluster and its clients know one another: from files that
/// only their owner can read. Not public.
#ifndef TROUPE_API_INTERNAL_SECRET_H_
#define TROUPE_API_INTERNAL_SECRET_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "devices/export.h"

TROUPE_EXPORT_BEGIN
namespace troupe {

/// The bytes of `file` without the newline at their end. NotFound; PermissionDenied;
/// FailedPrecondition if others than its owner can read or change it; InvalidArgument if it is no
/// file, or the secret has less than 16 bytes or more than 4096. All name the file. Thread-safe.
absl::StatusOr<std::string> ReadSecret(const std::string& file);

/// What a client proves to the task at `address` ("host:port"): the secret of `file`, or, if none
/// is named and the address is loopback, the one that is published for it; empty: there is none. As
/// `ReadSecret`; a published secret that others than this user could have read or written is
/// FailedPrecondition. Thread-safe.
absl::StatusOr<std::string> SecretFor(const std::string& file, const std::string& address);

/// A new random secret that clients of the same user find by themselves (`SecretFor`), for as long
/// as this object lives. It lies in `$XDG_RUNTIME_DIR/troupe` or else `~/.cache/troupe`, in a file
/// for each address, which is locked: what a killed process leaves behind has no lock, and does not
/// count. Thread-compatible.
class PublishedSecret {
 public:
  /// nullptr if one of the addresses is not loopback: there clients would not find it.
  /// AlreadyExists: a process of this user has published one for the same address;
  /// FailedPrecondition: there is no folder for it, or others can get at it.
  static absl::StatusOr<std::unique_ptr<PublishedSecret>> Create(
      const std::vector<std::string>& addresses);
  /// Removes the files.
  ~PublishedSecret();
  PublishedSecret(const PublishedSecret&) = delete;
  PublishedSecret& operator=(const PublishedSecret&) = delete;

  /// The secret's file for one of the addresses.
  std::string file(const std::string& address) const;

 private:
  PublishedSecret() = default;

  std::string folder_;
  int folder_fd_ = -1;
  std::map<std::string, int> files_;  ///< By name in the folder: descriptors that hold the locks.
};

}  // namespace troupe
TROUPE_EXPORT_END

#endif  // TROUPE_API_INTERNAL_SECRET_H_
