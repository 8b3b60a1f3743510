/* model_config_write.c: writes config.json. Apart from the reading, as jansson and base/json.h use
 * the same names. */
#include "base/file.h"
#include "base/json.h"
#include "net/model_config.h"

static void write_channels(struct json_out *json, const char *key, const double values[3])
{
    json_out_array_line(json, key);
    for (int i = 0; i < 3; i++)
        json_out_real(json, NULL, values[i]);
    json_out_close_array(json);
}

static void write_resize(struct json_out *json, const struct model_config *config)
{
    json_out_object(json, NULL);
    json_out_text(json, "name", "Resize");
    json_out_object_line(json, "arguments");
    if (config->resize_shorter) {
        json_out_int(json, "size", config->resize[0]);
    } else {
        json_out_array_line(json, "size");
        json_out_int(json, NULL, config->resize[0]);
        json_out_int(json, NULL, config->resize[1]);
        json_out_close_array(json);
    }
    json_out_close_object(json);
    json_out_close_object(json);
}

static void write_transform(struct json_out *json, const struct model_config *config)
{
    bool normalized = false;
    for (int i = 0; i < 3; i++)
        normalized = normalized || config->mean[i] != 0 || config->std[i] != 1;
    json_out_array(json, "transform");
    if (config->resize[0])
        write_resize(json, config);
    json_out_object_line(json, NULL);
    json_out_text(json, "name", "ToTensor");
    json_out_close_object(json);
    if (normalized) {
        json_out_object(json, NULL);
        json_out_text(json, "name", "Normalize");
        json_out_object(json, "arguments");
        write_channels(json, "mean", config->mean);
        write_channels(json, "std", config->std);
        json_out_close_object(json);
        json_out_close_object(json);
    }
    json_out_close_array(json);
}

static void write_all(FILE *stream, const struct model_config *config)
{
    struct json_out json;
    const char *architecture = config->architecture ? config->architecture : config->network;
    json_out_begin(&json, stream);
    json_out_object(&json, NULL);
    json_out_text(&json, "spec_version", "1.0");
    json_out_text(&json, "architecture", architecture ? architecture : "unknown");
    json_out_int(&json, "num_classes", config->num_classes);
    json_out_int(&json, "patch_size_pixels", config->patch_size_pixels);
    json_out_real(&json, "spacing_um_px", config->spacing_um_px);
    json_out_array_line(&json, "class_names");
    for (int64_t i = 0; i < config->num_classes; i++)
        json_out_text(&json, NULL, config->class_names[i]);
    json_out_close_array(&json);
    write_transform(&json, config);
    json_out_object(&json, "microtome");
    if (config->network)
        json_out_text(&json, "network", config->network);
    json_out_text(&json, "padding", model_config_padding(config->padding));
    if (config->stride_px)
        json_out_int(&json, "stride_px", config->stride_px);
    json_out_close_object(&json);
    json_out_close_object(&json);
    json_out_end(&json);
}

bool model_config_write(const char *path, const struct model_config *config, struct err *err)
{
    if (config->num_classes < 1 || !config->class_names || config->patch_size_pixels < 1 ||
        !(config->spacing_um_px > 0))
        return err_set(err, ERR_USAGE,
                       "%s: the classes, the patch size and the spacing must be known", path);
    struct file_out out;
    if (!file_out_open(&out, path, err))
        return false;
    write_all(out.stream, config);
    return file_out_commit(&out, err);
}
