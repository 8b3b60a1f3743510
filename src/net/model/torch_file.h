/* torch_file.h: the tensors of a file of PyTorch (.pt, .pth, .bin: zip archives as torch.save and
 * torch.jit.save write them since 1.6), as those of a safetensors file. Contiguous tensors stay in
 * the mapped file. Nothing in the file is run (net/torch/pickle.h). */
#ifndef NET_MODEL_TORCH_FILE_H
#define NET_MODEL_TORCH_FILE_H
#include "net/model/safetensors.h"

/* Whether a file starts as files of PyTorch do, also those that are too old to be read. */
bool torch_file_is(const char *path);

/* Of a checkpoint, the one dictionary of tensors in it, such as "state_dict"; if there are several,
 * the file is refused with their names. A prefix "module." or "model." that all names have is
 * removed. Names of TorchScript modules are those of its state dictionary. *out is the caller's;
 * free with safetensors_close. */
bool torch_file_open(const char *path, struct safetensors *out, struct err *err);
/* The same over bytes in memory, which must live as long as *out. path only names them. */
bool torch_file_parse(const uint8_t *bytes, size_t size, const char *path, struct safetensors *out,
                      struct err *err);
#endif
