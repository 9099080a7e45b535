#include "net/tls.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <utility>

#include "devices/status_macros.h"
#include "net/handshake.h"

namespace troupe {
namespace {

/// The oldest error of this thread's queue, which is emptied.
std::string OpensslError() {
  const unsigned long code = ERR_get_error();  // NOLINT: OpenSSL's type
  ERR_clear_error();
  if (code == 0) return "no reason is given";
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : StrCat("error ", code);
}

/// OpenSSL's own access to a socket raises SIGPIPE when the peer is gone; this one does not.
int BioWrite(BIO* bio, const char* data, size_t size, size_t* written) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::send(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))), data,
                           size, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0) {
    *written = static_cast<size_t>(n);
    return 1;
  }
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) BIO_set_retry_write(bio);
  return 0;
}

int BioRead(BIO* bio, char* data, size_t size, size_t* read) {
  BIO_clear_retry_flags(bio);
  const ssize_t n = ::recv(static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))), data,
                           size, MSG_DONTWAIT);
  if (n > 0) {
    *read = static_cast<size_t>(n);
    return 1;
  }
  if (n == 0) {
    BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    errno = 0;
  } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
    BIO_set_retry_read(bio);
  }
  return 0;
}

long BioControl(BIO* bio, int command, long, void*) {  // NOLINT: OpenSSL's types
  if (command == BIO_CTRL_FLUSH) return 1;
  if (command == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
  return 0;
}

BIO* MakeBio(int socket) {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "troupe socket");
    BIO_meth_set_write_ex(m, BioWrite);
    BIO_meth_set_read_ex(m, BioRead);
    BIO_meth_set_ctrl(m, BioControl);
    return m;
  }();
  BIO* bio = BIO_new(method);
  // NOLINTNEXTLINE: OpenSSL keeps what it is given as a pointer.
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  BIO_set_init(bio, 1);
  return bio;
}

/// OK if a URI of the certificate's names lets its holder be `task`.
absl::Status CheckNames(const X509* certificate, const std::string& task) {
  const bool client = task.rfind(kClientTask, 0) == 0;
  const std::string wanted = StrCat("troupe:", client ? "client" : task);
  auto* const names = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  std::string shown;
  bool found = false;
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const text = name->d.uniformResourceIdentifier;
    const std::string uri(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                          static_cast<size_t>(ASN1_STRING_length(text)));
    found |= uri == wanted;
    shown += StrCat(shown.empty() ? "" : " and ", uri);
  }
  GENERAL_NAMES_free(names);
  if (found) return absl::OkStatus();
  return absl::PermissionDeniedError(StrCat("the certificate of ", task, " names ",
                                            shown.empty() ? "no task" : shown, ", not ", wanted,
                                            "; troupe certificates makes one that does"));
}

class TlsStream final : public ByteStream {
 public:
  TlsStream(SSL_CTX* context, int socket, bool connecting)
      : ssl_(SSL_new(context)), socket_(socket) {
    if (ssl_ == nullptr) return;
    BIO* bio = MakeBio(socket);
    SSL_set_bio(ssl_, bio, bio);
    connecting ? SSL_set_connect_state(ssl_) : SSL_set_accept_state(ssl_);
  }

  ~TlsStream() override { SSL_free(ssl_); }

  IoResult Handshake() override {
    if (ssl_ == nullptr) return Failed("out of memory");
    std::lock_guard<std::mutex> lock(mutex_);
    ERR_clear_error();
    const int rc = SSL_do_handshake(ssl_);
    return rc == 1 ? IoResult() : Result(rc);
  }

  absl::Status CheckPeer(const std::string& task) const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return CheckNames(SSL_get0_peer_certificate(ssl_), task);
  }

  IoResult Read(const iovec* buffers, int count) override {
    std::lock_guard<std::mutex> lock(mutex_);
    IoResult result;
    for (int i = 0; i < count; ++i) {
      size_t at = 0;
      while (at < buffers[i].iov_len) {
        size_t n = 0;
        ERR_clear_error();
        const int rc = SSL_read_ex(ssl_, static_cast<char*>(buffers[i].iov_base) + at,
                                   buffers[i].iov_len - at, &n);
        if (rc != 1) return result.bytes > 0 ? result : Result(rc);
        at += n;
        result.bytes += n;
        // The peer may speak without end; others want their turn.
        if (result.bytes >= kTurnBytes) return result;
      }
    }
    return result;
  }

  IoResult Write(const iovec* buffers, int count) override {
    std::lock_guard<std::mutex> lock(mutex_);
    IoResult result;
    int i = 0;
    size_t at = 0;
    while (i < count && result.bytes < kTurnBytes) {
      const char* data = static_cast<const char*>(buffers[i].iov_base) + at;
      size_t size = buffers[i].iov_len - at;
      if (size < kRecordBytes && i + 1 < count) {
        // Small pieces are joined: each record costs an encryption of its own.
        size = 0;
        size_t from = at;
        for (int j = i; j < count && size < kRecordBytes; ++j, from = 0) {
          const size_t n = std::min(kRecordBytes - size, buffers[j].iov_len - from);
          std::memcpy(joined_ + size, static_cast<const char*>(buffers[j].iov_base) + from, n);
          size += n;
        }
        data = joined_;
      }
      size_t n = 0;
      ERR_clear_error();
      const int rc = SSL_write_ex(ssl_, data, std::min(size, kRecordBytes), &n);
      if (rc != 1) return result.bytes > 0 ? result : Result(rc);
      result.bytes += n;
      for (n += at, at = 0; i < count && n >= buffers[i].iov_len; ++i) n -= buffers[i].iov_len;
      at = n;
    }
    return result;
  }

  // A record more may have been decrypted.
  bool short_read_is_last() const override { return false; }

  void CloseWrite() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ERR_clear_error();
      SSL_shutdown(ssl_);
      ERR_clear_error();
    }
    ::shutdown(socket_, SHUT_WR);
  }

 private:
  static constexpr size_t kRecordBytes = 16 << 10;  // What TLS allows.
  static constexpr size_t kTurnBytes = 256 << 10;

  static IoResult Failed(std::string why) {
    return {IoResult::State::kFailed, 0, absl::UnavailableError("TLS: " + why)};
  }

  IoResult Result(int rc) {
    switch (SSL_get_error(ssl_, rc)) {
      case SSL_ERROR_WANT_READ:
        return {IoResult::State::kWantRead, 0, {}};
      case SSL_ERROR_WANT_WRITE:
        return {IoResult::State::kWantWrite, 0, {}};
      case SSL_ERROR_ZERO_RETURN:
        return {IoResult::State::kEnd, 0, {}};
      case SSL_ERROR_SYSCALL: {
        ERR_clear_error();
        if (errno == 0) return {IoResult::State::kEnd, 0, {}};
        char text[128];
        return Failed(strerror_r(errno, text, sizeof(text)));
      }
      default:
        return Explain();
    }
  }

  IoResult Explain() {
    const unsigned long code = ERR_peek_error();  // NOLINT: OpenSSL's type
    const int reason = ERR_GET_REASON(code);
    // A peer that ends without the proper words has been killed, or is an older one.
    if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
      ERR_clear_error();
      return {IoResult::State::kEnd, 0, {}};
    }
    const long verified = SSL_get_verify_result(ssl_);  // NOLINT: OpenSSL's type
    const std::string text = OpensslError();
    IoResult result = Failed(text);
    const auto denied = [&](const std::string& why) {
      result.status = absl::PermissionDeniedError("TLS: " + why);
      return result;
    };
    const bool other_authority = reason == SSL_R_TLSV1_ALERT_UNKNOWN_CA ||
                                 verified == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
                                 verified == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN;
    const char* const hint = other_authority ? " (it is of another authority)" : "";
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
      return denied(StrCat(
          "the peer's certificate is refused: ", X509_verify_cert_error_string(verified), hint));
    }
    if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
      return denied("the peer shows no certificate");
    }
    // Alerts are what the other side says.
    if (reason > SSL_AD_REASON_OFFSET) {
      return denied(StrCat("the peer refuses this task's certificate: ", text, hint));
    }
    if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST ||
        reason == SSL_R_UNKNOWN_PROTOCOL || reason == SSL_R_BAD_RECORD_TYPE) {
      result.status = absl::FailedPreconditionError(
          StrCat("TLS: the peer does not speak TLS (", text, "); start all tasks with it or none"));
    }
    return result;
  }

  SSL* ssl_;
  int socket_;
  mutable std::mutex mutex_;
  char joined_[kRecordBytes];
};

absl::Status CheckReadable(const char* what, const std::string& file) {
  if (file.empty()) return InvalidArgument("TLS: no file for the ", what, " is given");
  if (!std::ifstream(file)) {
    return absl::NotFoundError(StrCat("TLS: ", what, " file ", file, ": cannot be opened"));
  }
  return absl::OkStatus();
}

absl::Status BadFile(const char* what, const std::string& file) {
  return InvalidArgument("TLS: ", what, " file ", file, ": ", OpensslError());
}

}  // namespace

struct TlsContext::Impl {
  ~Impl() { SSL_CTX_free(context); }
  SSL_CTX* context = nullptr;
};

TlsContext::~TlsContext() = default;

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::CreateIfAny(const TlsFiles& files) {
  const int named = !files.certificate.empty() + !files.key.empty() + !files.authority.empty();
  if (named == 0) return std::shared_ptr<TlsContext>();
  if (named == 3) return Create(files);
  return InvalidArgument("TLS needs a certificate, its key and the authority's certificate");
}

absl::StatusOr<std::shared_ptr<TlsContext>> TlsContext::Create(const TlsFiles& files) {
  // A kernel or callback without end keeps threads going while the process ends: OpenSSL is not to
  // be taken apart under them.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  TROUPE_RETURN_IF_ERROR(CheckReadable("certificate", files.certificate));
  TROUPE_RETURN_IF_ERROR(CheckReadable("key", files.key));
  TROUPE_RETURN_IF_ERROR(CheckReadable("authority", files.authority));
  std::shared_ptr<TlsContext> result(new TlsContext);
  result->impl_ = std::make_unique<Impl>();
  ERR_clear_error();
  SSL_CTX* context = result->impl_->context = SSL_CTX_new(TLS_method());
  if (context == nullptr) return absl::InternalError("TLS: " + OpensslError());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  // A passphrase would be asked for on the terminal.
  SSL_CTX_set_default_passwd_cb(context, [](char*, int, int, void*) { return 0; });
  if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1) {
    return BadFile("certificate", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    if (ERR_GET_REASON(ERR_peek_error()) != X509_R_KEY_VALUES_MISMATCH) {
      return BadFile("key", files.key);
    }
    ERR_clear_error();
    return InvalidArgument("TLS: key file ", files.key, " does not belong to certificate file ",
                           files.certificate);
  }
  if (SSL_CTX_load_verify_locations(context, files.authority.c_str(), nullptr) != 1) {
    return BadFile("authority", files.authority);
  }
  const X509* certificate = SSL_CTX_get0_certificate(context);
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    return InvalidArgument("TLS: certificate file ", files.certificate,
                           ": the certificate has expired");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    return InvalidArgument("TLS: certificate file ", files.certificate,
                           ": the certificate is not valid yet");
  }
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  return result;
}

absl::Status TlsContext::CheckOwn(const std::string& task) const {
  return CheckNames(SSL_CTX_get0_certificate(impl_->context), task);
}

std::unique_ptr<ByteStream> TlsContext::MakeStream(int socket, bool connecting) const {
  return std::make_unique<TlsStream>(impl_->context, socket, connecting);
}

}  // namespace troupe
